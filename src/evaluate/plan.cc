#include "evaluate/plan.h"

#include "graph/ir/builder.h"
#include "graph/ir/rewrite.h"
#include "graph/ir/text.h"
#include "graph/ir/walk.h"
#include "graph/op/lower.h"

namespace tenon::graph {
namespace {

// The call as a function of its operands, of which absent ones are no parameters. `result` builds
// what it gives.
template <class F>
FunctionRef function_of_operands(const Binding& binding, const Call& call, const F& result) {
  Builder b;
  b.at(binding.span);
  std::vector<Operand> params;
  for (const Operand& arg : call.args) {
    params.push_back(arg ? b.param(cat("p", params.size()), without_known_values(type_of(arg)))
                         : Operand());
  }
  Operand made = result(b, make_call(call.kind, call.callee, params, call.attrs));
  return b.finish("single", made, attrs({{"primitive", Any(true)}}));
}

FunctionRef single_call(const Binding& binding, const Call& call) {
  return function_of_operands(binding, call, [&](Builder& b, const Ref<const Call>& inner) {
    return b.bind_typed(inner, without_known_values(binding.var->type), "r");
  });
}

FunctionRef expanded_call(const Binding& binding, const Call& call, const Operator& op) {
  return function_of_operands(binding, call, [&](Builder& b, const Ref<const Call>& inner) {
    return op.expand(b, *inner);
  });
}

}  // namespace

// Recurses over nesting alone: a chain of calls, however long, is a list of functions to visit.
class Plan::Maker {
 public:
  Maker(Plan& plan, const Module& module, KernelCache& cache)
      : plan_(plan), module_(module), cache_(cache) {}

  void make(const FunctionRef& function) {
    reach(function);
    while (!waiting_.empty()) {
      const FunctionRef next = waiting_.back();
      waiting_.pop_back();
      slots_ = &plan_.slots_.at(next.get());
      visit(*next);
    }
    std::vector<KernelCache::Request> missing;
    for (const Use& use : uses_) {
      if (use.lowered) missing.push_back({use.key, use.lowered});
    }
    const std::vector<CompiledKernelRef> compiled = cache_.compile(missing);
    auto next = compiled.begin();
    for (Use& use : uses_) {
      if (use.lowered) use.compiled = *next++;
      for (const Binding* binding : use.bindings) plan_.kernels_[binding] = use.compiled;
    }
  }

 private:
  // A kernel, and the calls that take it: `compiled` from before, else `lowered` to be compiled.
  struct Use {
    std::string key;
    loop::KernelRef lowered;
    CompiledKernelRef compiled;
    std::vector<const Binding*> bindings;
  };

  void reach(const FunctionRef& function) {
    if (plan_.slots_.try_emplace(function.get()).second) waiting_.push_back(function);
  }

  void visit(const FunctionExpr& function) {
    for (const VarRef& param : function.params) add_slot(*param);
    visit(*function.body);
  }

  void visit(const Block& block) {
    for (const auto& binding : block.bindings) {
      add_slot(*binding->var);
      if (auto* call = binding->value.as<Call>()) visit(*binding, *call);
      if (auto* loop = binding->value.as<Loop>()) {
        for (const VarRef& var : loop->vars) add_slot(*var);
      }
      for_each_block(binding->value, [this](const BlockRef& inner) { visit(*inner); });
    }
  }

  void visit(const Binding& binding, const Call& call) {
    if (call.kind == CalleeKind::kGlobal) return reach(module_->functions.at(call.callee));
    if (call.kind == CalleeKind::kKernel) {
      const loop::KernelRef& kernel = module_->kernels.at(call.callee);
      return use(binding, cat("kernel/", reinterpret_cast<uintptr_t>(kernel.get())),
                 [&] { return kernel; });
    }
    const Operator* op = operator_of(call);
    if (!op) return;
    if (op->expand) return expand(binding, call, *op);
    if (!op->lower || op->view || binding.var->type.is<ScalarType>()) return;
    const FunctionRef single = single_call(binding, call);
    use(binding, to_text(single), [&] {
      loop::ScheduleOptions options;
      options.name = op->name;
      options.vector_bytes = cache_.target().vector_bytes;
      return lower_primitive(single, options);
    });
  }

  void expand(const Binding& binding, const Call& call, const Operator& op) {
    FunctionRef& made = plan_.expansions_[&binding];
    if (!made) made = expanded_call(binding, call, op);
    for (const auto& inner : made->body->bindings) {
      // Its symbols would be taken for the caller's.
      TENON_ASSERT(!inner->value.as<MatchShape>(), op.name, " binds sizes where it is expanded");
    }
    visit(*made);
  }

  template <class F>
  void use(const Binding& binding, std::string key, const F& lower) {
    auto [it, fresh] = by_key_.try_emplace(key, uses_.size());
    if (fresh) {
      Use& added = uses_.emplace_back();
      added.compiled = cache_.find(key);
      if (!added.compiled) added.lowered = lower();
      added.key = std::move(key);
    }
    uses_[it->second].bindings.push_back(&binding);
  }

  void add_slot(const Var& var) {
    slots_->try_emplace(&var, static_cast<uint32_t>(slots_->size()));
  }

  Plan& plan_;
  const Module& module_;
  KernelCache& cache_;
  std::vector<FunctionRef> waiting_;  // reached, to be visited
  Slots* slots_ = nullptr;            // of the function that is visited
  std::vector<Use> uses_;
  std::unordered_map<std::string, size_t> by_key_;  // into uses_
};

Plan::Plan(const Module& module, const FunctionRef& function, KernelCache* cache) {
  Maker(*this, module, *cache).make(function);
}

const CompiledKernel* Plan::kernel_of(const Binding& binding) const {
  auto it = kernels_.find(&binding);
  return it == kernels_.end() ? nullptr : it->second.get();
}

const FunctionExpr* Plan::expansion_of(const Binding& binding) const {
  auto it = expansions_.find(&binding);
  return it == expansions_.end() ? nullptr : it->second.get();
}

}  // namespace tenon::graph
