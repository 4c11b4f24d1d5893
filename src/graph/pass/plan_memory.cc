#include "graph/pass/plan_memory.h"

#include <deque>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/lifetimes.h"
#include "graph/pass/plan_arenas.h"
#include "graph/pass/share_storages.h"
#include "graph/pass/verify_memory_plan.h"

namespace tenon::graph {
namespace {

class Planner : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    // All are keyed by addresses, which may be reused.
    planned_.clear();
    places_.clear();
    replaced_by_.clear();
    arenas_.clear();
    storages_.clear();
    source_of_.clear();
    allocated_before_.clear();
    const Lifetimes lifetimes(function);
    std::set<int64_t> devices;
    for (const PlannedValue& value : lifetimes.values()) devices.insert(value.device);
    for (const int64_t device : devices) plan(lifetimes, device);
  }

  void before(const Binding& binding) override {
    if (memory_intrinsic(binding.value) == MemoryIntrinsic::kTensor) {
      source_of_[binding.var.get()] = binding.value.as<Call>()->args[0].as<Var>();
    }
    const auto found = allocated_before_.find(&binding);
    if (found == allocated_before_.end()) return;
    for (const auto& allocate : found->second) allocate();
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto intrinsic = memory_intrinsic(value);
    if (intrinsic == MemoryIntrinsic::kStorage) {
      if (const auto place = places_.find(var.get()); place != places_.end()) {
        return arenas_.at(place->second.arena);
      }
      const auto other = replaced_by_.find(var.get());
      return storages_[var.get()] =
                 other == replaced_by_.end() ? keep(var, value) : storages_.at(other->second);
    }
    if (intrinsic == MemoryIntrinsic::kTensor) {
      auto* call = value.as<Call>();
      auto source = source_of_.find(var.get());
      if (source == source_of_.end()) return keep(var, value);
      const auto place = places_.find(source->second);
      if (place == places_.end()) return keep(var, value);
      return keep(var, tensor_call(call->args[0], Dim(place->second.offset),
                                   call->result_type.cast<TensorType>()));
    }
    return keep(var, value);
  }

 private:
  void plan(const Lifetimes& lifetimes, int64_t device) {
    for (PlannedArena& made : plan_arenas(lifetimes, device)) {
      const PlannedArena& arena = planned_.emplace_back(std::move(made));
      for (const auto& [storage, offset] : arena.offsets) places_[storage] = {&arena, offset};
      allocated_before_[arena.before].push_back([this, &arena, device] {
        arenas_[&arena] = allocate(Dim(arena.bytes), device, "arena");
      });
    }
    const SharedStorages shared = share_storages(lifetimes, device);
    replaced_by_.insert(shared.replaced_by.begin(), shared.replaced_by.end());
    for (const SharedStorages::Moved& moved : shared.moved) {
      allocated_before_[moved.before].push_back([this, moved, device] {
        storages_[moved.storage] = allocate(moved.bytes, device, moved.storage->name);
      });
    }
  }

  Operand allocate(const Dim& bytes, int64_t device, std::string_view name) {
    return builder().bind_stated(storage_call(bytes, device), name);
  }

  struct Place {
    const PlannedArena* arena;
    int64_t offset;
  };
  std::deque<PlannedArena> planned_;
  // By the storage that the function had.
  std::unordered_map<const Var*, Place> places_;
  std::unordered_map<const Var*, const Var*> replaced_by_;
  // What has been allocated in its stead.
  std::unordered_map<const PlannedArena*, Operand> arenas_;
  std::unordered_map<const Var*, Operand> storages_;
  std::unordered_map<const Var*, const Var*> source_of_;
  std::unordered_map<const Binding*, std::vector<std::function<void()>>> allocated_before_;
};

}  // namespace

Module plan_memory(const Module& module, PassContext&) {
  Module planned = Planner().run(module);
  verify_memory_plan(planned);
  return planned;
}

}  // namespace tenon::graph
