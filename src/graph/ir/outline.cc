#include "graph/ir/outline.h"

namespace tenon::graph {

Operand Outline::param(const Operand& outside, std::string_view name, TypeRef type) {
  return map_[outside.get()] = builder_.param(name, std::move(type));
}

Operand Outline::mapped(const Operand& outside) const {
  auto it = map_.find(outside.get());
  return it == map_.end() ? outside : it->second;
}

Array<Operand> Outline::mapped(const Array<Operand>& outside) const {
  return outside.map([this](const Operand& operand) { return mapped(operand); });
}

ExprRef Outline::mapped_call(const Binding& binding, Attrs attrs) const {
  const auto* call = binding.value.as<Call>();
  TENON_ASSERT(call && !call->closure, "only calls by name are outlined");
  return make_call(call->kind, call->callee.view(), mapped(call->args), std::move(attrs),
                   call->result_type);
}

Operand Outline::copy(const Binding& binding, TypeRef type, Attrs attrs) {
  builder_.at(binding.span);
  return map_[binding.var.get()] = builder_.bind_typed(mapped_call(binding, std::move(attrs)),
                                                       std::move(type), binding.var->name.view());
}

Operand Outline::copy(const Binding& binding) {
  return copy(binding, binding.var->type, binding.value.as<Call>()->attrs);
}

Operand Outline::copy_checked(const Binding& binding) {
  builder_.at(binding.span);
  return map_[binding.var.get()] =
             builder_.bind_as(mapped_call(binding, binding.value.as<Call>()->attrs),
                              binding.var->type, binding.var->name.view());
}

}  // namespace tenon::graph
