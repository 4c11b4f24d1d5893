// Symbolic integers: the sizes in tensor types, kernels and memory plans.
//
// A Dim is an integer expression over named symbols, kept in a canonical form: a sum of products
// with integer coefficients, whose factors are symbols or the atoms floordiv, mod, min, max and
// bcast. Two Dims that the canonical form can tell equal are structurally equal, so `a == b` is a
// proof of equality (and `a != b` proves nothing: use `proves_differ`).
//
// A symbol stands for an integer >= 0 and is identified by its name within one function. Symbols
// are bound by the shapes of parameters or by `match_shape`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/array.h"
#include "object/object.h"
#include "object/string.h"

namespace tenon {

class Dim;

enum class DimKind : uint8_t {
  kConst,     // value
  kSymbol,    // name
  kAdd,       // args: terms, >= 2, in canonical order
  kMul,       // args: factors, >= 2; a constant coefficient comes first
  kFloorDiv,  // args: dividend, divisor; rounds towards minus infinity
  kMod,       // args: dividend, divisor; the sign of the divisor
  kMin,
  kMax,
  // The broadcast of two sizes that are equal or of which one is 1, not known which: the other
  // one where one is 1, else their common value. Evaluation with unequal sizes is an error.
  kBcast,
};

struct DimNode : Object {
  DimKind kind = DimKind::kConst;
  int64_t value = 0;
  String name;
  Array<Ref<const DimNode>> args;

  // Of the fields above; not fields of their own to reflection. 0: not computed.
  uint64_t hash = 0;
  uint32_t depth = 1;

  TENON_TYPE(TypeIndex::LoopBegin + 0);
};

// What a symbol is worth; nullopt where unknown.
using DimEnv = std::function<std::optional<int64_t>(std::string_view symbol)>;
using DimSubstitution = std::function<std::optional<Dim>(std::string_view symbol)>;

// A handle, cheap to copy; never null.
class Dim : public Handle {
 public:
  Dim(int64_t value = 0);  // NOLINT: a number is a Dim
  explicit Dim(Ref<const DimNode> node)
      : Handle(Ref<Object>::adopt(const_cast<DimNode*>(node.leak()))) {}
  static Dim symbol(std::string_view name);

  const DimNode& node() const { return *static_cast<const DimNode*>(object()); }
  DimKind kind() const { return node().kind; }

  bool is_const() const { return kind() == DimKind::kConst; }
  bool is_const(int64_t value) const { return is_const() && node().value == value; }
  std::optional<int64_t> as_const() const;

  bool operator==(const Dim& other) const;

  static bool accepts(const AnyView& a) { return a.type_index == DimNode::kTypeIndex; }
  static std::string type_text() { return "size"; }
};

// A number for hash tables; equal Dims have equal ones.
uint64_t hash(const Dim& d);

// Makes a Dim of a node that was read from outside (JSON): the same, canonical. Errors as those of
// construction, and Error (Damaged) for a node with the wrong number of arguments.
Dim canonical(const Ref<const DimNode>& node);

// Construction canonicalises. Constant arithmetic that overflows int64 throws Error (Usage), and so
// does an expression beyond 4096 terms or 200 levels. floordiv and mod may cancel common factors
// (n*m / n is m), as if no divisor were 0.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floordiv(const Dim& a, const Dim& b);  // division by the constant 0 throws Error (Usage)
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim bcast(const Dim& a,
          const Dim& b);  // equal -> that; a constant 1 -> the other; const c > 1 -> c
Dim ceildiv(const Dim& a, const Dim& b);
Dim product(const std::vector<Dim>& dims);

// Proofs. `true` is certain; `false` says only that no proof was found.
bool proves_equal(const Dim& a, const Dim& b);
bool proves_differ(const Dim& a, const Dim& b);
bool proves_nonnegative(const Dim& d);
bool proves_less_equal(const Dim& a, const Dim& b);
std::optional<int64_t> lower_bound(const Dim& d);  // of every value, symbols being >= 0
std::optional<int64_t> upper_bound(const Dim& d);

std::optional<int64_t> evaluate(const Dim& d, const DimEnv& env);  // nullopt: unknown or overflow
Dim substitute(const Dim& d, const DimSubstitution& map);
void collect_symbols(const Dim& d, std::vector<std::string>* names);  // each once, in first use

// Text as in graph IR: `n`, `2*n + 1`, `floordiv(n, 2)`, `bcast(n, m)`.
std::string to_text(const Dim& d);

}  // namespace tenon
