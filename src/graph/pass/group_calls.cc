#include "graph/pass/group_calls.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "loop/recurrence.h"

namespace tenon::graph {
namespace {

// In multiplications and additions. A call of more work keeps all threads as busy by itself: one
// thread takes tens of microseconds for it, and waking the others a few.
constexpr double kMostWork = 1 << 22;
// Of a group. Smaller groups finish on one thread before a second has woken.
constexpr double kLeastWork = 1 << 19;
// Of a group's work, the most that one call may have: the other threads would wait for it.
constexpr double kMostShare = 0.75;
// Of a symbolic size, for these estimates.
constexpr int64_t kSymbolicSize = 64;

double elements(const Array<Dim>& dims) {
  double product = 1;
  for (const Dim& dim : dims)
    product *= static_cast<double>(dim.as_const().value_or(kSymbolicSize));
  return product;
}

using BindingRef = Ref<const Binding>;

class Grouping {
 public:
  // `all`: every call that may be in a group is, whatever its work.
  Grouping(const Module& module, bool all) : module_(module), all_(all) {}

  BlockRef block(const BlockRef& block) {
    std::vector<BindingRef> segment, out;
    for (const BindingRef& binding : block->bindings) {
      if (writes_destinations(*binding) || is_movable(*binding)) {
        segment.push_back(binding);
        continue;
      }
      flush(&segment, &out);
      out.push_back(with_grouped_blocks(binding));
    }
    flush(&segment, &out);
    auto grouped = make<Block>(*block);
    grouped->bindings = Array<BindingRef>(out);
    return grouped;
  }

 private:
  BindingRef with_grouped_blocks(const BindingRef& binding) {
    bool has_blocks = false;
    for_each_block(binding->value, [&](const BlockRef&) { has_blocks = true; });
    if (!has_blocks) return binding;
    auto grouped = make<Binding>(*binding);
    grouped->value = map_blocks(binding->value, [&](const BlockRef& b) { return block(b); });
    return grouped;
  }

  // Of an operand's memory: the storage, or the variable itself where that isn't made here.
  const Object* memory_of(const Operand& operand) const {
    const auto known = memory_.find(operand.get());
    return known == memory_.end() ? operand.get() : known->second;
  }

  static bool is_movable(const Binding& binding) {
    const auto intrinsic = memory_intrinsic(binding.value);
    return intrinsic == MemoryIntrinsic::kStorage || intrinsic == MemoryIntrinsic::kTensor ||
           intrinsic == MemoryIntrinsic::kReshape;
  }

  bool writes_destinations(const Binding& binding) const {
    const auto* call = binding.value.as<Call>();
    return call && is_unit(binding.var->type) && inputs_of(*module_, *call) < call->args.size();
  }

  static double work_of(const loop::Compute& compute) {
    double work = 0;
    for (const auto& stage : compute.stages) {
      work += elements(stage->out->shape) * elements(stage->reduce_extents);
    }
    return work;
  }

  // An estimate.
  double work_of(const Call& call) const {
    if (call.kind == CalleeKind::kKernel) {
      const loop::KernelInterfaceRef& kernel = module_->kernels.at(call.callee);
      if (const auto* compute = kernel.as<loop::Compute>()) return work_of(*compute);
      const auto* repeated = kernel.as<loop::Recurrence>();
      return repeated ? elements({repeated->trip_count}) * work_of(*repeated->step) : 0;
    }
    // A product or a convolution: each element of the result takes a column of the second operand.
    const auto* result = type_of(call.args.back()).as<TensorType>();
    const auto* factor = type_of(call.args[call.args.size() > 2 ? 1 : 0]).as<TensorType>();
    if (!result || !factor || result->dims.empty()) return 0;
    const double columns = elements({result->dims.back()});
    return elements(result->dims) * elements(factor->dims) / std::max(columns, 1.0);
  }

  // Moves the calls that gain from running at the same time to the end; returns how many they are.
  size_t choose(std::vector<BindingRef>* calls) const {
    if (all_) return calls->size();
    std::vector<std::pair<double, BindingRef>> weighed;
    double total = 0;
    for (const BindingRef& binding : *calls) {
      weighed.emplace_back(work_of(*binding->value.as<Call>()), binding);
      total += weighed.back().first;
    }
    const auto heavier = [](const auto& a, const auto& b) { return a.first > b.first; };
    std::ranges::stable_sort(weighed, heavier);
    size_t alone = 0;
    for (; alone < weighed.size(); ++alone) {
      const double work = weighed[alone].first;
      if (work <= kMostWork && work <= kMostShare * total) break;
      total -= work;
    }
    const size_t together = weighed.size() - alone;
    if (together < 2 || total < kLeastWork) return 0;
    for (size_t i = 0; i < weighed.size(); ++i) (*calls)[i] = weighed[i].second;
    return together;
  }

  // Each call's level, from 1.
  std::vector<int64_t> levels(const std::vector<BindingRef>& segment) {
    std::unordered_map<const Object*, int64_t> written, read;  // the last level that did
    std::vector<int64_t> out;
    for (const BindingRef& binding : segment) {
      const Call& call = *binding->value.as<Call>();
      int64_t level = 0;
      if (is_movable(*binding)) {
        if (!call.args.empty()) memory_[binding->var.get()] = memory_of(call.args[0]);
        out.push_back(0);
        continue;
      }
      const size_t first = inputs_of(*module_, call);
      for (size_t i = 0; i < call.args.size(); ++i) {
        const Object* memory = memory_of(call.args[i]);
        level = std::max(level, written[memory]);
        if (i >= first) level = std::max(level, read[memory]);
      }
      ++level;
      for (size_t i = 0; i < call.args.size(); ++i) {
        int64_t& last = (i >= first ? written : read)[memory_of(call.args[i])];
        last = std::max(last, level);
      }
      out.push_back(level);
    }
    return out;
  }

  // Moves the segment to `out`, grouped.
  void flush(std::vector<BindingRef>* segment, std::vector<BindingRef>* out) {
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    const std::vector<BindingRef> bindings = std::exchange(*segment, {});
    std::vector<int64_t> level = levels(bindings);
    // What is movable gets the level of the first call that needs it.
    std::unordered_map<const Object*, int64_t> needed;
    for (size_t i = bindings.size(); i-- > 0;) {
      if (is_movable(*bindings[i])) {
        const auto by = needed.find(bindings[i]->var.get());
        level[i] = by == needed.end() ? kNever : by->second;
      }
      for (const Operand& operand : bindings[i]->value.as<Call>()->args) {
        const auto [at, is_new] = needed.try_emplace(operand.get(), level[i]);
        if (!is_new) at->second = std::min(at->second, level[i]);
      }
    }
    struct Level {
      std::vector<BindingRef> movable, calls;
    };
    std::map<int64_t, Level> by_level;
    for (size_t i = 0; i < bindings.size(); ++i) {
      Level& at = by_level[level[i]];
      (is_movable(*bindings[i]) ? at.movable : at.calls).push_back(bindings[i]);
    }
    std::vector<BindingRef> moved;
    for (auto& [_, at] : by_level) {
      moved.insert(moved.end(), at.movable.begin(), at.movable.end());
      const size_t alone = at.calls.size() - choose(&at.calls);
      for (size_t i = 0; i < at.calls.size(); ++i) {
        if (i >= alone && (i - alone) % kMostConcurrent == 0) {
          const size_t count = std::min(kMostConcurrent, at.calls.size() - i);
          if (count > 1) moved.push_back(head(static_cast<int64_t>(count), at.calls[i]->span));
        }
        moved.push_back(at.calls[i]);
      }
    }
    // Without a head, all keep their order.
    const bool is_grouped = moved.size() > bindings.size();
    out->insert(out->end(), is_grouped ? moved.begin() : bindings.begin(),
                is_grouped ? moved.end() : bindings.end());
  }

  static BindingRef head(int64_t count, const Span& span) {
    auto var = make<Var>();
    var->type = unit_type();
    auto binding = make<Binding>();
    binding->var = var;
    binding->value = concurrent_call(count);
    binding->span = span;
    return binding;
  }

  const Module& module_;
  const bool all_;
  std::unordered_map<const Object*, const Object*> memory_;  // of views, by their variables
};

}  // namespace

Module group_calls(const Module& module, PassContext& cx) {
  if (cx.inter_op <= 1) return module;
  Map<String, FunctionRef> functions;
  for (const auto& [name, function] : module->functions) {
    auto grouped = make<FunctionExpr>(*function);
    grouped->body = Grouping(module, cx.level < 2).block(function->body);
    functions.set(name, grouped);
  }
  return with_functions(module, functions);
}

}  // namespace tenon::graph
