// One activation of a function: its variables and sizes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "evaluate/plan.h"
#include "support/text.h"

namespace tenon::graph {

class Activation {
 public:
  explicit Activation(const Slots& slots) : slots_(slots), values_(slots.size()) {}

  // The size of an activation, without its values' payloads.
  static size_t bytes(const Slots& slots) {
    return sizeof(Activation) + slots.size() * sizeof(Any);
  }
  size_t bytes() const { return bytes(slots_); }

  // A host's tensor may have strides, also in a cell; that of a variable is compact and aligned.
  void set(const VarRef& var, Any value);
  // None for an absent operand.
  Any value(const Operand& operand) const;
  // Lets go of the variables' values.
  void drop(std::span<const Var* const> vars) {
    for (const Var* var : vars) values_[slots_.at(var)] = Any();
  }

  // Throws Runtime if it can't be computed.
  int64_t size(const Dim& dim) const;
  std::vector<int64_t> sizes(const Array<Dim>& dims) const;

  // Sets the parameters and binds the symbols in their types. Throws `kind` for an argument of
  // another dtype or shape.
  void bind_params(const FunctionExpr& function, std::span<const Any> args, ErrorKind kind);
  // Sets the variable that a pattern binds. Throws Runtime if the value, which came out of a cell
  // or a tuple, doesn't have its type.
  void bind_field(const VarRef& var, Any value);
  // The value of a symbol, if it has one.
  std::optional<int64_t> find_size(const std::string& symbol) const;
  void set_size(const std::string& symbol, int64_t value);
  // What a function of the host returned as a value of the type that its call states: floats are
  // rounded. Throws Runtime if it doesn't fit. A function value of the host has no name.
  // Expressions over sizes are compared only with `compound`, where all symbols have values.
  Any returned(std::string_view function, const TypeRef& type, Any found, bool compound = true);
  // Throws Runtime if what a polymorphic function gave doesn't fit the type that its call states.
  void check_result(const TypeRef& type, const Any& found);
  // Throws Runtime if what an array holds doesn't fit its type.
  void check_element(const TypeRef& type, const Any& found);
  // Matches a value's shape or elements and returns the value. Throws Runtime on a mismatch.
  Any match_shape(const MatchShape& match);
  // Throws Runtime if the condition does not hold.
  void check(const Check& check) const;

  // Sizes bound in a block are local to it: the next iteration of a loop binds them anew. A block
  // saves bound_sizes() when it begins and passes it to forget_sizes_from() when it ends.
  size_t bound_sizes() const { return bound_.size(); }
  void forget_sizes_from(size_t count);

 private:
  // What is matched, for errors, which most values don't meet: the message is in three parts.
  struct Subject {
    std::string_view before, name, after;
    ErrorKind kind;
    DataType dtype = {};     // of the tensor whose dimensions are matched; void for elements
    bool is_scalar = false;  // the only element is a scalar's value

    std::string message() const { return cat(before, name, after); }
  };

  std::optional<int64_t> evaluated(const Dim& dim) const;
  // Throws what stops the computation of the size.
  [[noreturn]] void fail_size(const Dim& dim) const;

  // Binds dimensions that are a symbol without a value, and compares constants and bound symbols.
  // Compares expressions only with `compound`, which must follow the binding of all symbols.
  void bind_dims(const Array<Dim>& dims, std::span<const int64_t> found, const Subject& subject,
                 bool compound);
  // `axis` is the one that differs; -1 for the rank.
  [[noreturn]] void fail(const Array<Dim>& dims, std::span<const int64_t> found,
                         const Subject& subject, int64_t axis) const;
  // The same for the elements of a small integer tensor, shape or scalar. Negative sizes are
  // errors.
  void bind_elements(const Array<Dim>& dims, const Any& found, const Subject& subject,
                     bool compound);
  void bind_type(const TypeRef& type, const Any& found, const Subject& subject, bool compound);

  const Slots& slots_;
  std::vector<Any> values_;
  std::unordered_map<std::string, int64_t> sizes_;
  std::vector<std::string> bound_;  // the symbols of sizes_, in the order of binding
};

}  // namespace tenon::graph
