// The plan's verifier shares nothing with the planner: it reads the finished module, takes each
// tensor's place from the intrinsics alone, and compares every pair of tensors in one storage.
#include <algorithm>
#include <unordered_map>

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/plan_memory.h"

namespace tenon::graph {
namespace {

struct Placed {
  const Var* tensor;
  const Var* storage;
  Dim begin, end;               // bytes
  int64_t first = 0, last = 0;  // bindings of the block
};

class Verifier {
 public:
  void verify(const FunctionRef& function) {
    name_ = std::string(function->name);
    block(function->body);
  }

 private:
  void block(const BlockRef& block) {
    std::vector<Placed> placed;
    std::unordered_map<const Var*, size_t> place_of;
    auto use = [&](const Operand& operand, int64_t at) {
      auto* var = operand.as<Var>();
      if (!var) return;
      if (auto it = place_of.find(var); it != place_of.end()) {
        placed[it->second].last = std::max(placed[it->second].last, at);
      }
    };
    std::function<void(const ExprRef&, int64_t)> uses = [&](const ExprRef& value, int64_t at) {
      for_each_operand(value, [&](const Operand& operand) { use(operand, at); });
      for_each_block(value, [&](const BlockRef& inner) {
        for (const auto& binding : inner->bindings) {
          uses(binding->value, at);
          // A view made inside may leave; its source then lives at least as long as the binding.
        }
        use(inner->result, at);
      });
    };
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const auto& binding = *block->bindings[i];
      const int64_t at = static_cast<int64_t>(i);
      uses(binding.value, at);
      auto* call = binding.value.as<Call>();
      if (call && call->kind == CalleeKind::kPacked && call->callee == kMemoryTensor) {
        auto* type = binding.var->type.as<TensorType>();
        const Dim offset(call->attrs.at("offset").as<Ref<const DimNode>>());
        const Dim bytes =
            product({type->dims.begin(), type->dims.end()}) * Dim(type->dtype.bytes());
        place_of[binding.var.get()] = placed.size();
        placed.push_back(
            {binding.var.get(), call->args[0].as<Var>(), offset, offset + bytes, at, at});
      } else if ((call && call->callee == kMemoryReshape) || binding.value.is<MatchShape>()) {
        const Operand& source = call ? call->args[0] : binding.value.as<MatchShape>()->value;
        if (auto* var = source.as<Var>()) {
          if (auto it = place_of.find(var); it != place_of.end()) {
            place_of[binding.var.get()] = it->second;
          }
        }
      }
      for_each_block(binding.value, [this](const BlockRef& inner) { this->block(inner); });
    }
    use(block->result, static_cast<int64_t>(block->bindings.size()));
    compare(placed);
  }

  void compare(const std::vector<Placed>& placed) const {
    std::unordered_map<const Var*, std::vector<const Placed*>> by_storage;
    for (const Placed& p : placed) by_storage[p.storage].push_back(&p);
    for (const auto& [storage, tensors] : by_storage) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        for (size_t j = i + 1; j < tensors.size(); ++j) {
          const Placed &a = *tensors[i], &b = *tensors[j];
          const bool together = a.first <= b.last && b.first <= a.last;
          const bool apart = proves_less_equal(a.end, b.begin) || proves_less_equal(b.end, a.begin);
          TENON_ASSERT(!together || apart, "memory plan of '", name_, "': %", a.tensor->name,
                       " and %", b.tensor->name, " are alive together in one place");
        }
      }
    }
  }

  std::string name_;
};

}  // namespace

void verify_memory_plan(const Module& module) {
  for (const auto& [name, function] : module->functions) Verifier().verify(function);
}

}  // namespace tenon::graph
