// Outlining: moves calls of a block into a new function.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/ir/builder.h"

namespace tenon::graph {

class Outline {
 public:
  // Makes a value from outside a parameter; call it before any copy. Others are used as they are.
  Operand param(const Operand& outside, std::string_view name, TypeRef type);
  Operand param(std::string_view name, TypeRef type) { return builder_.param(name, type); }

  // Copies the binding of a call with mapped operands, and with this type and these attributes.
  Operand copy(const Binding& binding, TypeRef type, Attrs attrs);
  Operand copy(const Binding& binding);
  // The same, but infers the type again: unproved conditions of the call become checks in the new
  // function.
  Operand copy_checked(const Binding& binding);

  // The operand for `outside` in the new function: a parameter, a copied binding's variable, or
  // itself.
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
