// One activation of a function: its variables and sizes.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "evaluate/plan.h"

namespace tenon::graph {

class Activation {
 public:
  explicit Activation(const Slots& slots) : slots_(slots), values_(slots.size()) {}

  // That one takes, but for what its values are.
  static size_t bytes(const Slots& slots) {
    return sizeof(Activation) + slots.size() * sizeof(Any);
  }
  size_t bytes() const { return bytes(slots_); }

  void set(const VarRef& var, Any value) { values_[slots_.at(var.get())] = std::move(value); }
  // None for an absent operand.
  Any value(const Operand& operand) const;

  // A Runtime error where a symbol has no value.
  int64_t size(const Dim& dim) const;
  std::vector<int64_t> sizes(const Array<Dim>& dims) const;

  // Sets the parameters and binds the sizes that their types name. Errors: Usage for a tensor of
  // another dtype or none, Runtime for another shape.
  void bind_params(const FunctionExpr& function, std::span<const Any> args);
  // The value whose shape, or elements, are matched. Errors: Runtime when they don't.
  Any match_shape(const MatchShape& match);
  // A Runtime error where the condition does not hold.
  void check(const Check& check) const;

  // Sizes bound in a block are the block's own: the next turn of a loop binds them anew. A block
  // asks for the count when it begins, and has those from there on forgotten when it ends.
  size_t bound_sizes() const { return bound_.size(); }
  void forget_sizes_from(size_t count);

 private:
  // Symbols that stand alone are bound where they have no value yet. What is computed of symbols is
  // compared when `compound` is set, after all that stand alone.
  void bind_dims(const Array<Dim>& dims, std::span<const int64_t> found, const std::string& what,
                 bool compound);
  // The elements of a small integer tensor, a shape or a scalar, none of them a negative size.
  void bind_elements(const Array<Dim>& dims, const Any& found, const std::string& what,
                     bool compound);
  void bind_type(const TypeRef& type, const Any& found, const std::string& what, bool compound);

  const Slots& slots_;
  std::vector<Any> values_;
  std::unordered_map<std::string, int64_t> sizes_;
  std::vector<std::string> bound_;  // the symbols of sizes_, in the order of binding
};

}  // namespace tenon::graph
