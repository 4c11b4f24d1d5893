#include "graph/pass/fuse_loops.h"

#include <unordered_map>
#include <unordered_set>

#include "graph/ir/rewrite.h"
#include "graph/pass/loop_reader.h"
#include "graph/pass/remove_dead_code.h"
#include "object/reflect.h"

namespace tenon::graph {
namespace {

// Adds the kernels that the block calls.
void collect_kernels(const BlockRef& block, std::unordered_set<std::string>* names) {
  for (const auto& binding : block->bindings) {
    const auto* call = binding->value.as<Call>();
    if (call && call->kind == CalleeKind::kKernel) names->insert(call->callee.str());
    for_each_block(binding->value, [&](const BlockRef& inner) { collect_kernels(inner, names); });
  }
}

class LoopFuser : public Rewriter {
 public:
  Module fuse(const Module& module, PassContext& cx) {
    kernels_ = module->kernels;
    const Module fused =
        remove_dead_code(make_module(run(module)->functions, kernels_, module->adts), cx);
    drop_unused(module, fused);
    return make_module(fused->functions, kernels_, module->adts);
  }

 protected:
  Operand rewrite_loop(const VarRef& var, const Loop& loop) override {
    const auto fused = read_loop(
        loop, kernels_, [this](const std::string& symbol) { return builder().in_scope(symbol); });
    return fused ? call(*fused, loop, var) : Rewriter::rewrite_loop(var, loop);
  }

  // Results of loops have types that tell more than those of their variables.
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (const auto* field = value.as<Field>()) {
      const auto found = results_.find(field->tuple.get());
      if (found != results_.end()) return found->second[static_cast<size_t>(field->index)];
    }
    const auto* match = value.as<MatchShape>();
    if (match && !match->elements && same_dims(type_of(match->value), var->type)) {
      return match->value;
    }
    return keep(var, value);
  }

 private:
  Operand call(const LoopKernel& fused, const Loop& loop, const VarRef& var) {
    std::vector<TypeRef> types(fused.kernel->outputs.size());
    for (size_t i = 0; i < loop.vars.size(); ++i) {
      if (fused.ends[i].kind != LoopEnd::kResult) continue;
      const auto* stack = known_tensor(loop.vars[i]->type) ? nullptr : known_tensor(loop.init[i]);
      std::vector<Dim> dims = stack ? stack->dims.to_vector() : std::vector<Dim>();
      if (stack) dims[0] = fused.trip_count;
      types[fused.ends[i].result] =
          stack ? TypeRef(tensor_type(stack->dtype, dims)) : loop.vars[i]->type;
    }
    const bool is_single = types.size() == 1;
    const TypeRef type = is_single ? types[0] : tuple_type(types);
    const Operand results = builder().bind_typed(
        make_call(CalleeKind::kKernel, kernel_for(fused), mapped(Array<Operand>(fused.args)),
                  attrs({{kIntegersAttr, attr_dims(fused.integers)}}), type),
        type, var->name);
    std::vector<Operand> ends;
    for (size_t i = 0; i < loop.vars.size(); ++i) {
      switch (const LoopEnd& end = fused.ends[i]; end.kind) {
        case LoopEnd::kTripCount:
          ends.push_back(builder().bind(make_size(fused.trip_count), "turns"));
          break;
        case LoopEnd::kInitial:
          ends.push_back(mapped(loop.init[i]));
          break;
        case LoopEnd::kResult:
          ends.push_back(is_single ? results
                                   : builder().field(results, static_cast<int64_t>(end.result)));
          break;
      }
    }
    if (ends.size() == 1) return ends[0];
    Operand all = builder().tuple(ends);
    results_[all.get()] = ends;
    return all;
  }

  // The kernels that nothing calls any more.
  void drop_unused(const Module& before, const Module& after) {
    const auto called = [](const Module& module) {
      std::unordered_set<std::string> names;
      for (const auto& [_, function] : module->functions) collect_kernels(function->body, &names);
      return names;
    };
    const std::unordered_set<std::string> now = called(after);
    for (const std::string& name : called(before)) {
      if (!now.contains(name)) kernels_.erase(String(name));
    }
  }

  // Equal loops share a kernel.
  String kernel_for(const LoopKernel& fused) {
    auto& bucket = by_hash_[structural_hash(Any(fused.kernel))];
    for (const auto& [name, kernel] : bucket) {
      if (structural_equal(Any(kernel), Any(fused.kernel))) return name;
    }
    String name(free_name(fused.name, kernels_));
    kernels_.set(name, fused.kernel);
    bucket.emplace_back(name, fused.kernel);
    return name;
  }

  Map<String, loop::KernelInterfaceRef> kernels_;
  std::unordered_map<uint64_t, std::vector<std::pair<String, loop::RecurrenceRef>>> by_hash_;
  std::unordered_map<const Object*, std::vector<Operand>> results_;  // the variables of a loop
};

}  // namespace

Module fuse_loops(const Module& module, PassContext& cx) {
  return LoopFuser().fuse(module, cx);
}

}  // namespace tenon::graph
