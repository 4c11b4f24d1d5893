#include "codegen/bytecode/liveness.h"

#include <functional>

#include "graph/ir/walk.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file speaks of graph IR only

BlockLiveness analyse_liveness(const Array<Ref<const Binding>>& bindings,
                               const std::vector<Operand>& results,
                               const std::vector<const Var*>& extra) {
  const size_t count = bindings.size();
  BlockLiveness out;
  out.dies.resize(count);
  out.unused.resize(count, false);

  constexpr int64_t kNever = -1;
  std::unordered_map<const Var*, int64_t> last;
  for (const Var* var : extra) last[var] = kNever;
  for (const auto& binding : bindings) last[binding->var.get()] = kNever;

  std::function<void(const BlockRef&, int64_t)> visit_block;
  auto use = [&](const Operand& operand, int64_t at) {
    if (auto* var = operand.as<Var>()) {
      if (auto it = last.find(var); it != last.end()) it->second = at;
    }
  };
  auto visit = [&](const ExprRef& value, int64_t at) {
    for_each_operand(value, [&](const Operand& operand) { use(operand, at); });
    for_each_block(value, [&](const BlockRef& inner) { visit_block(inner, at); });
  };
  visit_block = [&](const BlockRef& inner, int64_t at) {
    for (const auto& binding : inner->bindings) visit(binding->value, at);
    use(inner->result, at);
  };

  for (size_t i = 0; i < count; ++i) visit(bindings[i]->value, static_cast<int64_t>(i));
  for (const Operand& result : results) use(result, static_cast<int64_t>(count));

  for (size_t i = 0; i < count; ++i) {
    const Var* var = bindings[i]->var.get();
    if (last[var] == kNever) out.unused[i] = true;
  }
  // In the order of binding, so that registers are given in the same order every time.
  auto dies = [&](const Var* var) {
    const int64_t at = last.at(var);
    if (at != kNever && at < static_cast<int64_t>(count)) out.dies[at].push_back(var);
  };
  for (const Var* var : extra) dies(var);
  for (const auto& binding : bindings) dies(binding->var.get());
  return out;
}

std::unordered_set<const Var*> variables_used_inside(const ExprRef& value) {
  std::unordered_set<const Var*> used;
  auto use = [&](const Operand& operand) {
    if (auto* var = operand.as<Var>()) used.insert(var);
  };
  std::function<void(const BlockRef&)> visit = [&](const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      for_each_operand(binding->value, use);
      for_each_block(binding->value, visit);
    }
    use(block->result);
  };
  for_each_block(value, visit);
  return used;
}

}  // namespace tenon::codegen
