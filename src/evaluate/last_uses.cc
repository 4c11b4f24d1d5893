#include "evaluate/last_uses.h"

#include "graph/ir/free_names.h"
#include "graph/ir/walk.h"
#include "support/poll.h"

namespace tenon::graph {

// Where the arms of a match read more variables than these, what an arm doesn't read lives on:
// lists of it for each arm would take memory in the square of the program.
constexpr size_t kMostDropped = 64;

void LastUses::add(const FunctionExpr& function) {
  live_.clear();
  Vars arguments;
  became_live_ = &arguments;
  block(*function.body);
}

void LastUses::use(const VarRef& var, Vars* last_uses) {
  if (!var || !live_.insert(var.get()).second) return;
  became_live_->push_back(var.get());
  last_uses->push_back(var.get());
}

// Recurses over nesting only.
void LastUses::block(const Block& b) {
  Vars last;
  use(b.result.cast<const Var>(), &last);
  if (!last.empty()) ends_[&b] = std::move(last);
  for (size_t i = b.bindings.size(); i-- > 0;) {
    poll();
    live_.erase(b.bindings[i]->var.get());
    binding(*b.bindings[i]);
  }
}

void LastUses::binding(const Binding& binding) {
  const ExprRef& value = binding.value;
  Vars last;
  if (const auto* literal = value.as<FunctionExpr>()) {
    for (const VarRef& var : free_names(*literal).variables) use(var, &last);
  } else {
    if (value.is<Loop>()) {
      loop(binding);
    } else {
      arms(value);
    }
    for_each_operand(value, [&](const Operand& operand) { use(operand.cast<const Var>(), &last); });
  }
  if (!last.empty()) of_bindings_[&binding] = std::move(last);
}

void LastUses::arms(const ExprRef& value) {
  const std::vector<VarRef> variables = block_variables(value);
  Vars* const around = became_live_;
  std::vector<std::pair<const Block*, std::unordered_set<const Var*>>>
      needed;  // when an arm begins
  for_each_block(value, [&](const BlockRef& arm) {
    Vars here;
    became_live_ = &here;
    block(*arm);
    for (const VarRef& var : variables) live_.erase(var.get());
    auto& [_, at_begin] = needed.emplace_back(arm.get(), std::unordered_set<const Var*>());
    for (const Var* var : here) {
      if (live_.erase(var)) at_begin.insert(var);
    }
  });
  became_live_ = around;
  Vars all;
  for (const auto& [arm, vars] : needed) {
    for (const Var* var : vars) {
      if (!live_.insert(var).second) continue;
      became_live_->push_back(var);
      all.push_back(var);
    }
  }
  if (all.size() > kMostDropped) return;
  for (const auto& [arm, vars] : needed) {
    for (const Var* var : all) {
      if (!vars.contains(var)) begins_[arm].push_back(var);
    }
  }
}

// What the blocks use of those around them must live through all turns.
void LastUses::loop(const Binding& binding) {
  const auto& loop = *binding.value.as<Loop>();
  Vars& after = after_loops_[&binding];
  for (const BlockRef& block : {loop.condition, loop.body}) {
    for (const VarRef& var : free_variables(*block, loop.vars)) use(var, &after);
  }
  for (const VarRef& var : loop.vars) after.push_back(var.get());
  block(*loop.body);
  for (const VarRef& var : loop.vars) live_.insert(var.get());
  block(*loop.condition);
  for (const VarRef& var : loop.vars) live_.erase(var.get());
}

}  // namespace tenon::graph
