#include "graph/ir/effects.h"

#include <algorithm>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

Effect effect_of(const Call& call, const TypeRef& type) {
  switch (call.kind) {
    case CalleeKind::kOperator:
      return Effect::Pure;
    case CalleeKind::kKernel:
      // Without a value, it writes to destinations.
      return is_unit(type) ? Effect::Ordered : Effect::Pure;
    case CalleeKind::kPacked:
      return memory_intrinsic(call) ? Effect::Pure : effect_of_packed(call);
    case CalleeKind::kGlobal:
    case CalleeKind::kClosure:
      break;
  }
  return Effect::Ordered;
}

Effect effect_of(const Binding& binding) {
  const ExprRef& value = binding.value;
  if (auto* call = value.as<Call>()) return effect_of(*call, binding.var->type);
  Effect effect = Effect::Pure;
  if (value.is<FunctionExpr>()) return effect;
  for_each_block(value, [&](const BlockRef& block) {
    for (const auto& inner : block->bindings) effect = std::max(effect, effect_of(*inner));
  });
  return effect;
}

bool must_stay(const Binding& binding) {
  const ExprRef& value = binding.value;
  if (value.is<Check>() || value.is<MatchShape>() || value.is<Loop>()) return true;
  if (effect_of(binding) == Effect::Ordered) return true;
  if (value.is<FunctionExpr>()) return false;
  bool inner = false;
  for_each_block(value, [&](const BlockRef& block) {
    for (const auto& b : block->bindings) inner = inner || must_stay(*b);
  });
  return inner;
}

}  // namespace tenon::graph
