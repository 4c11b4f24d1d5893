// The plan's verifier shares nothing with the planner: it reads the finished module, takes each
// tensor's place from the intrinsics alone, follows what each value may share memory with (views, a
// branch's results, fields of tuples, what a call may return), and compares every pair of tensors
// in one storage.
#include <algorithm>
#include <set>
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
  using Places = std::set<size_t>;  // indices of what a value may share memory with

  void block(const BlockRef& block) {
    std::vector<Placed> outer_placed = std::move(placed_);
    placed_.clear();
    may_be_.clear();
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const auto& binding = *block->bindings[i];
      at_ = static_cast<int64_t>(i);
      may_be_[binding.var.get()] = visit(binding.value);
      auto* call = binding.value.as<Call>();
      if (call && call->kind == CalleeKind::kPacked && call->callee == kMemoryTensor) {
        auto* type = binding.var->type.as<TensorType>();
        const Dim offset(call->attrs.at("offset").as<Ref<const DimNode>>());
        const Dim bytes =
            product({type->dims.begin(), type->dims.end()}) * Dim(type->dtype.bytes());
        may_be_[binding.var.get()] = {placed_.size()};
        placed_.push_back(
            {binding.var.get(), call->args[0].as<Var>(), offset, offset + bytes, at_, at_});
      }
    }
    at_ = static_cast<int64_t>(block->bindings.size());
    use(block->result);
    compare(placed_);
    for (const auto& binding : block->bindings) {
      for_each_block(binding->value, [this](const BlockRef& inner) { this->block(inner); });
    }
    placed_ = std::move(outer_placed);
  }

  // Marks what the operand may be as alive now.
  Places use(const Operand& operand) {
    auto* var = operand.as<Var>();
    auto it = var ? may_be_.find(var) : may_be_.end();
    if (it == may_be_.end()) return {};
    for (size_t place : it->second) placed_[place].last = std::max(placed_[place].last, at_);
    return it->second;
  }

  // Everything that the value uses is alive now; returns what it may be.
  Places visit(const ExprRef& value) {
    Places operands, results;
    for_each_operand(value, [&](const Operand& operand) { operands.merge(use(operand)); });
    if (auto* loop = value.as<Loop>()) {
      for (const VarRef& var : loop->vars) may_be_[var.get()] = operands;
    }
    for_each_block(value, [&](const BlockRef& inner) {
      for (const auto& binding : inner->bindings) {
        may_be_[binding->var.get()] = visit(binding->value);
        if (value.is<FunctionExpr>()) results.merge(Places(may_be_[binding->var.get()]));
      }
      results.merge(use(inner->result));
    });
    auto* call = value.as<Call>();
    const bool keeps_nothing =
        call && (call->kind == CalleeKind::kKernel || call->attrs.contains(String(kNoRetainAttr)) ||
                 (is_memory_intrinsic(call->callee) && call->callee != kMemoryReshape));
    if (!keeps_nothing && !value.is<If>()) results.merge(operands);
    return results;
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
  std::vector<Placed> placed_;  // of the block
  std::unordered_map<const Var*, Places> may_be_;
  int64_t at_ = 0;
};

}  // namespace

void verify_memory_plan(const Module& module) {
  for (const auto& [name, function] : module->functions) Verifier().verify(function);
}

}  // namespace tenon::graph
