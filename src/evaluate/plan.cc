#include "evaluate/plan.h"

#include "graph/ir/builder.h"
#include "graph/ir/rewrite.h"
#include "graph/ir/text.h"
#include "graph/ir/walk.h"
#include "graph/op/lower.h"
#include "graph/op/strings.h"

namespace tenon::graph {
namespace {

// The call as a function whose parameters are its present operands. `result` builds its result.
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
  return b.finish("single", made, attrs({{kPrimitiveAttr, Any(true)}}));
}

FunctionRef single_call(const Binding& binding, const Call& call) {
  return function_of_operands(binding, call, [&](Builder& b, const Ref<const Call>& inner) {
    return b.bind_typed(inner, without_known_values(binding.var->type), "r");
  });
}

bool is_expanded(const Operator& op, const Call& call) {
  return op.expand || computes_on_strings(op, call);
}

// Runs where the call does, so that it may use all symbols of the call's types and attributes.
FunctionRef expanded_call(const Binding& binding, const Call& call, const Operator& op) {
  SymbolSet names;
  for (const Operand& arg : call.args) collect_symbols(type_of(arg), &names);
  collect_symbols(call.attrs, &names);
  std::vector<Dim> symbols;
  for (const std::string& name : names) symbols.push_back(Dim::symbol(name));
  return function_of_operands(binding, call, [&](Builder& b, const Ref<const Call>& inner) {
    b.block_var("sizes", shape_type(symbols));
    return op.expand ? op.expand(b, *inner) : expand_strings(b, *inner, binding.var->type);
  });
}

// The kernels that the calls of one block need: those in the cache, and those to prepare.
class Requests {
 public:
  explicit Requests(KernelCache& cache) : cache_(cache) {}

  template <class F>
  void add(const Binding& binding, std::string key, std::string_view name, const F& lower) {
    auto [it, fresh] = by_key_.try_emplace(key, uses_.size());
    if (fresh) {
      Use& use = uses_.emplace_back();
      use.kernel = cache_.find(key);
      if (!use.kernel) missing_.push_back({std::move(key), std::string(name), lower()});
    }
    uses_[it->second].bindings.push_back(&binding);
  }

  // Calls `each` with every binding and its kernel.
  template <class F>
  void finish(const F& each) {
    const std::vector<PreparedKernelRef> made = cache_.prepare(missing_);
    auto next = made.begin();
    for (Use& use : uses_) {
      if (!use.kernel) use.kernel = *next++;
      for (const Binding* binding : use.bindings) each(binding, use.kernel);
    }
  }

 private:
  struct Use {
    PreparedKernelRef kernel;
    std::vector<const Binding*> bindings;
  };

  KernelCache& cache_;
  std::vector<Use> uses_;
  std::vector<KernelCache::Request> missing_;
  std::unordered_map<std::string, size_t> by_key_;  // into uses_
};

}  // namespace

void Plan::add_slots(const FunctionExpr& function, Slots* slots) {
  for (const VarRef& param : function.params) slots->try_emplace(param.get(), slots->size());
  if (function.self) slots->try_emplace(function.self.get(), slots->size());
  add_slots(*function.body, slots);
}

// Recurses into nested blocks and expansions of operators.
void Plan::add_slots(const Block& block, Slots* slots) {
  for (const auto& binding : block.bindings) {
    slots->try_emplace(binding->var.get(), slots->size());
    for (const VarRef& var : block_variables(binding->value)) {
      slots->try_emplace(var.get(), slots->size());
    }
    if (binding->value.is<FunctionExpr>()) continue;  // its calls have activations of their own
    for_each_block(binding->value, [&](const BlockRef& inner) { add_slots(*inner, slots); });
    const Operator* op = operator_of(binding->value);
    if (!op || !is_expanded(*op, *binding->value.as<Call>())) continue;
    FunctionRef& made = expansions_[binding.get()];
    if (!made) made = expanded_call(*binding, *binding->value.as<Call>(), *op);
    for (const auto& inner : made->body->bindings) {
      // Its symbols would clash with the caller's.
      TENON_ASSERT(!inner->value.as<MatchShape>(), op->name, " binds sizes where it is expanded");
    }
    add_slots(*made, slots);
  }
}

const Slots& Plan::slots_of(const FunctionExpr& function) {
  auto [it, fresh] = slots_.try_emplace(&function);
  if (fresh) {
    add_slots(function, &it->second);
    last_uses_.add(function);
  }
  return it->second;
}

const FreeNames& Plan::captures_of(const FunctionExpr& literal) {
  auto [it, fresh] = captures_.try_emplace(&literal);
  if (!fresh) return it->second;
  it->second = free_names(literal);
  slots_of(literal);
  Slots& slots = slots_.at(&literal);
  for (const VarRef& var : it->second.variables) slots.try_emplace(var.get(), slots.size());
  return it->second;
}

void Plan::prepare(const Block& block) {
  if (!prepared_.insert(&block).second) return;
  Requests requests(cache_);
  for (const auto& binding : block.bindings) {
    auto* call = binding->value.as<Call>();
    if (!call) continue;
    if (call->kind == CalleeKind::kKernel) {
      const loop::KernelInterfaceRef& kernel = module_->kernels.at(call->callee);
      requests.add(*binding, cat("kernel/", reinterpret_cast<uintptr_t>(kernel.get())),
                   call->callee.view(), [&] { return kernel; });
      continue;
    }
    const Operator* op = operator_of(*call);
    if (!op || !op->lower || op->view || binding->var->type.is<ScalarType>()) continue;
    if (is_expanded(*op, *call)) continue;
    const FunctionRef single = single_call(*binding, *call);
    requests.add(*binding, to_text(single), op->name, [&] { return lower_primitive(single); });
  }
  requests.finish(
      [&](const Binding* binding, const PreparedKernelRef& kernel) { kernels_[binding] = kernel; });
}

const FunctionExpr& Plan::callee_of(const Call& call) {
  const auto [at, fresh] = callees_.try_emplace(&call);
  if (fresh) at->second = module_->functions.at(call.callee).get();
  return *at->second;
}

const PreparedKernel* Plan::kernel_of(const Binding& binding) const {
  auto it = kernels_.find(&binding);
  return it == kernels_.end() ? nullptr : it->second.get();
}

const FunctionExpr* Plan::expansion_of(const Binding& binding) const {
  auto it = expansions_.find(&binding);
  return it == expansions_.end() ? nullptr : it->second.get();
}

}  // namespace tenon::graph
