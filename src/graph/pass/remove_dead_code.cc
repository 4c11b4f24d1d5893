#include "graph/pass/remove_dead_code.h"

#include <algorithm>
#include <unordered_set>

#include "graph/ir/calls.h"
#include "graph/ir/effects.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class Marker {
 public:
  std::unordered_set<const Object*> live;

  void mark(const BlockRef& block) {
    use(block->result);
    for (size_t i = block->bindings.size(); i-- > 0;) {
      const auto& binding = block->bindings[i];
      if (!live.contains(binding->var.get()) && !must_stay(*binding)) continue;
      live.insert(binding->var.get());
      for_each_operand(binding->value, [this](const Operand& o) { use(o); });
      for_each_block(binding->value, [this](const BlockRef& inner) { mark(inner); });
    }
  }

 private:
  void use(const Operand& operand) {
    if (operand) live.insert(operand.get());
  }
};

class Remover : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    Marker marker;
    marker.mark(function->body);
    live_ = std::move(marker.live);
  }
  bool drops(const Binding& binding) const override { return !live_.contains(binding.var.get()); }

 private:
  std::unordered_set<const Object*> live_;
};

}  // namespace

Module remove_dead_code(const Module& module, PassContext&) {
  Map<String, FunctionRef> exported;
  for (const auto& [name, function] : module->functions) {
    if (function->is_exported()) exported.set(name, function);
  }
  const Map<String, FunctionRef> used = reachable(exported, module->functions);
  Map<String, FunctionRef> kept;  // in their order
  for (const auto& [name, function] : module->functions) {
    if (used.contains(name)) kept.set(name, function);
  }
  return Remover().run(with_functions(module, kept));
}

}  // namespace tenon::graph
