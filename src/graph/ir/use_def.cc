#include "graph/ir/use_def.h"

#include "graph/ir/walk.h"

namespace tenon::graph {

UseDef::UseDef(const FunctionRef& function) {
  read(function->body);
}

void UseDef::read(const BlockRef& block) {
  const auto use = [this](const Operand& operand, Place place) {
    auto* var = operand.as<Var>();
    if (!var) return;
    Entry& entry = entries_[var];
    entry.last_use = place;
    ++entry.uses;
  };
  for (const auto& binding : block->bindings) {
    const Place place{binding.get(), block.get()};
    entries_[binding->var.get()].definition = place;
    for_each_operand(binding->value, [&](const Operand& operand) { use(operand, place); });
    for_each_block(binding->value, [this](const BlockRef& inner) { read(inner); });
  }
  use(block->result, {});
}

const UseDef::Entry& UseDef::find(const Operand& operand) const {
  static const Entry kNone;
  const auto it = entries_.find(operand.as<Var>());
  return it == entries_.end() ? kNone : it->second;
}

ExprRef UseDef::value_of(const Operand& operand) const {
  const Place place = definition(operand);
  return place ? place.binding->value : ExprRef();
}

UseDef::Place UseDef::only_use(const Operand& operand) const {
  const Entry& entry = find(operand);
  return entry.uses == 1 ? entry.last_use : Place();
}

}  // namespace tenon::graph
