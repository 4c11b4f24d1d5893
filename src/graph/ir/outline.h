// Outlining: calls of a block become a function of their own.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/ir/builder.h"

namespace tenon::graph {

class Outline {
 public:
  // Values from outside are parameters, which come before any call, or stand as they are.
  Operand param(const Operand& outside, std::string_view name, TypeRef type);
  Operand param(std::string_view name, TypeRef type) { return builder_.param(name, type); }

  // Copies the binding of a call, its operands mapped, with this type and these attributes.
  Operand copy(const Binding& binding, TypeRef type, Attrs attrs);
  Operand copy(const Binding& binding);
  // The same, inferring the type again: conditions of the call that aren't proved become checks of
  // the new function.
  Operand copy_checked(const Binding& binding);

  // What stands for `outside` here: a parameter, a copied binding's variable, or itself.
  Operand mapped(const Operand& outside) const;
  Array<Operand> mapped(const Array<Operand>& outside) const;

  Builder& builder() { return builder_; }
  FunctionRef finish(std::string_view name, const Operand& result, Attrs attrs = {}) {
    return builder_.finish(name, result, std::move(attrs));
  }

 private:
  ExprRef mapped_call(const Binding& binding, Attrs attrs) const;

  Builder builder_;
  std::unordered_map<const Object*, Operand> map_;
};

}  // namespace tenon::graph
