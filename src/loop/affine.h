// How expressions depend on loop variables, as a basis for schedules.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "loop/kernel.h"
#include "loop/walk.h"

namespace tenon::loop {

// A function of expressions that depends on a node's operands through their values. Each node is
// looked at once, also by later calls.
template <class Value>
class ExprMemo {
 public:
  // `find` makes the value of a node, with `at` for those of its operands.
  template <class Find>
  const Value& operator()(const ExprRef& root, const Find& find) {
    post_order(
        root, [&](const ExprRef& e) { known_.emplace(e.get(), std::pair(e, find(*e))); }, &seen_);
    return at(root);
  }
  const Value& at(const ExprRef& e) const { return known_.at(e.get()).second; }

 private:
  std::unordered_map<const Expr*, std::pair<ExprRef, Value>> known_;  // keeps the keys alive
  Seen seen_;
};

// The c in e = c * v + (something independent of v), if e has this form; Dim(0) if `e` doesn't
// depend on v. With `loads_are_free`, loads count as independent of v whatever their indices.
std::optional<Dim> coefficient(const ExprRef& e, const Ref<const Var>& v,
                               bool loads_are_free = false);

// The same for many expressions that share nodes, each of which is looked at once.
class Coefficients {
 public:
  explicit Coefficients(const Ref<const Var>& v, bool loads_are_free = false)
      : var_(v), loads_are_free_(loads_are_free) {}
  std::optional<Dim> operator()(const ExprRef& e);

 private:
  std::optional<Dim> find(const Expr& e) const;

  Ref<const Var> var_;
  bool loads_are_free_;
  ExprMemo<std::optional<Dim>> known_;
};

// The size that index arithmetic may divide by: a constant that is positive, or a symbolic size,
// which stops the program if it is 0; else nullopt.
std::optional<Dim> as_divisor(const ExprRef& e);

// A variable with the range [0, extent).
struct VarRange {
  Ref<const Var> var;
  Dim extent;
};

// Whether no operation of `e`, of i64, wraps, whatever the variables' and sizes' values are below
// 2^40. (May be false wrongly.) Indices that operators make are such numbers; a program's own
// integers, which may be made of indices as well (`range`), need not be.
bool is_exact(const ExprRef& e);
// What a load of a stored `e` gives, for all that looks into expressions: a product is rounded,
// and integers of indices that may wrap are closed to index arithmetic.
ExprRef as_stored(const ExprRef& e);

// Simplifies floordiv and mod by sizes where the variables' ranges allow it. A reshape between
// transpositions leaves such expressions: floordiv(i * 12 + j, 12) with j < 12 is i.
ExprRef simplify_indices(const ExprRef& e, const std::vector<VarRange>& ranges);

// Row-major strides, in elements.
std::vector<Dim> strides_of(const Array<Dim>& shape);

// The row-major offset of `indices` in a buffer of `shape`, as base + c1*v1 + c2*v2 + ... in the
// order of `vars`; the base includes what isn't affine.
ExprRef flat_offset(const Array<Dim>& shape, const Array<ExprRef>& indices,
                    const std::vector<Ref<const Var>>& vars);

// Replaces the indices of every load by a single index of that form.
ExprRef flatten_loads(const ExprRef& e, const std::vector<Ref<const Var>>& vars);

// Every load in the expression, without duplicates.
std::vector<const Load*> loads_in(const ExprRef& e);

}  // namespace tenon::loop
