#include "graph/pass/verify_memory_plan.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

struct Placed {
  const Var* tensor;
  const Var* storage;
  Dim begin, end;               // bytes
  int64_t first = 0, last = 0;  // bindings of the block
  int64_t overwritten = -1;     // the last binding that overwrote it
};

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  void verify(const FunctionRef& function) {
    name_ = std::string(function->name);
    block(function->body);
  }

 private:
  using Places = std::set<size_t>;  // indices of the tensors that a value may share memory with

  void block(const BlockRef& block) {
    std::vector<Placed> outer_placed = std::move(placed_);
    placed_.clear();
    may_be_ = {};  // clearing takes time for all that the outer block has put there
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const auto& binding = *block->bindings[i];
      at_ = static_cast<int64_t>(i);
      made_[binding.var.get()] = at_;
      may_be_[binding.var.get()] = visit(binding.value);
      auto* call = binding.value.as<Call>();
      if (memory_intrinsic(binding.value) == MemoryIntrinsic::kTensor) {
        auto* type = binding.var->type.as<TensorType>();
        const Dim offset(call->attrs.at("offset").as<Ref<const DimNode>>());
        const Dim bytes = product(type->dims.to_vector()) * Dim(type->dtype.bytes());
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

  // Marks all tensors that the operand may share memory with as alive now.
  Places use(const Operand& operand) {
    auto* var = operand.as<Var>();
    auto it = var ? may_be_.find(var) : may_be_.end();
    if (it == may_be_.end()) return {};
    for (size_t place : it->second) {
      Placed& p = placed_[place];
      p.last = std::max(p.last, at_);
      auto made = made_.find(var);
      TENON_ASSERT(var == p.tensor || made == made_.end() || p.overwritten <= made->second,
                   "memory plan of '", name_, "': %", var->name, " is read after %", p.tensor->name,
                   " was overwritten");
    }
    return it->second;
  }

  // Marks everything that the value uses as alive now; returns the value's places.
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
    if (call && call->kind == CalleeKind::kKernel) overwrite(*call);
    const auto intrinsic = memory_intrinsic(value);
    const bool keeps_nothing =
        call && (call->kind == CalleeKind::kKernel ||
                 (intrinsic ? intrinsic != MemoryIntrinsic::kReshape
                            : call->kind == CalleeKind::kPacked && !keeps_arguments(*call)));
    if (!keeps_nothing && !value.is<If>()) results.merge(operands);
    return results;
  }

  // A kernel may write a tensor that it also reads only if it declares the pair in place.
  void overwrite(const Call& call) {
    const loop::KernelInterface& kernel = *module_->kernels.at(call.callee);
    const size_t inputs = kernel.inputs.size();
    if (call.args.size() == inputs) return;  // its results are still values
    for (size_t out = 0; out < kernel.outputs.size(); ++out) {
      const Places written = use(call.args[inputs + out]);
      for (size_t in = 0; in < inputs; ++in) {
        for (size_t place : use(call.args[in])) {
          if (!written.contains(place)) continue;
          const auto said = [&](const Array<int64_t>& pair) {
            return pair[0] == static_cast<int64_t>(out) && pair[1] == static_cast<int64_t>(in);
          };
          TENON_ASSERT(std::any_of(kernel.in_place.begin(), kernel.in_place.end(), said),
                       "memory plan of '", name_, "': kernel '", call.callee, "' overwrites %",
                       placed_[place].tensor->name, ", which it reads");
          placed_[place].overwritten = at_;
        }
      }
    }
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

  const Module& module_;
  std::string name_;
  std::unordered_map<const Var*, int64_t> made_;  // the binding that makes each variable
  std::vector<Placed> placed_;                    // the tensors of the block
  std::unordered_map<const Var*, Places> may_be_;
  int64_t at_ = 0;
};

}  // namespace

void verify_memory_plan(const Module& module) {
  for (const auto& [name, function] : module->functions) Verifier(module).verify(function);
}

}  // namespace tenon::graph
