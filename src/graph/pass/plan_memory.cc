#include "graph/pass/plan_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/arena.h"
#include "graph/pass/verify_memory_plan.h"

namespace tenon::graph {
namespace {

int64_t align_up(int64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

Dim align_up(const Dim& bytes) {
  return ceildiv(bytes, Dim(kTensorAlignment)) * Dim(kTensorAlignment);
}

// A tensor created in a block, with the range of bindings in which its storage is in use.
struct Value {
  const Var* storage = nullptr;
  const Var* tensor = nullptr;
  int64_t device = 0;
  Dim bytes;
  int64_t begin = 0, end = 0;  // indices of bindings
  bool escapes = false;
};

// The tensors of one block and their lifetimes. Uses inside a nested block count as uses by the
// binding that contains the block.
class Lifetimes {
 public:
  explicit Lifetimes(const BlockRef& block) {
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      visit(*block->bindings[i], static_cast<int64_t>(i));
    }
    escape(block->result);
  }

  std::vector<Value>& values() { return values_; }

 private:
  void visit(const Binding& binding, int64_t at) {
    const ExprRef& value = binding.value;
    const auto intrinsic = memory_intrinsic(value);
    if (intrinsic == MemoryIntrinsic::kStorage) {
      Value v;
      v.storage = binding.var.get();
      v.device = device_of_storage(*value.as<Call>());
      v.bytes = bytes_of_storage(*value.as<Call>());
      v.begin = v.end = at;
      owner_[v.storage] = static_cast<int64_t>(values_.size());
      values_.push_back(v);
      return;
    }
    if (intrinsic == MemoryIntrinsic::kTensor) {
      const int64_t index = owner_of(value.as<Call>()->args[0]);
      if (index >= 0) {
        values_[index].tensor = binding.var.get();
        owner_[binding.var.get()] = index;
        use(index, at);
      }
      return;
    }
    if (intrinsic == MemoryIntrinsic::kReshape) {
      const int64_t index = owner_of(value.as<Call>()->args[0]);
      if (index >= 0) {
        owner_[binding.var.get()] = index;  // a view lives in its source's storage
        use(index, at);
      }
      return;
    }
    if (value.is<MatchShape>()) {
      const int64_t index = owner_of(value.as<MatchShape>()->value);
      if (index >= 0) {
        owner_[binding.var.get()] = index;
        use(index, at);
      }
      return;
    }
    auto* call = value.as<Call>();
    const bool keeps_nothing = call && (call->kind == CalleeKind::kKernel ||
                                        (call->kind == CalleeKind::kPacked &&
                                         !memory_intrinsic(*call) && !keeps_arguments(*call)));
    for_each_operand(value, [&](const Operand& operand) {
      const int64_t index = owner_of(operand);
      if (index < 0) return;
      use(index, at);
      if (!keeps_nothing && !value.is<If>()) values_[index].escapes = true;
    });
    const bool captures = value.is<FunctionExpr>();
    for_each_block(value, [&](const BlockRef& inner) { visit_nested(inner, at, captures); });
  }

  // Conservative: a value that a nested block uses lives until the block's binding, and escapes
  // unless all its uses there are kernel calls and views. Values that a closure captures escape.
  void visit_nested(const BlockRef& block, int64_t at, bool captures) {
    for (const auto& binding : block->bindings) {
      auto* call = binding->value.as<Call>();
      const bool view = memory_intrinsic(binding->value) == MemoryIntrinsic::kReshape ||
                        binding->value.is<MatchShape>();
      for_each_operand(binding->value, [&](const Operand& operand) {
        const int64_t index = owner_of(operand);
        if (index < 0) return;
        use(index, at);
        if (view) owner_[binding->var.get()] = index;
        if (captures) values_[index].escapes = true;
        if (!view && !(call && call->kind == CalleeKind::kKernel)) {
          values_[index].escapes = true;
        }
      });
      for_each_block(binding->value, [&](const BlockRef& inner) {
        visit_nested(inner, at, captures || binding->value.is<FunctionExpr>());
      });
    }
    const int64_t index = owner_of(block->result);
    if (index >= 0) values_[index].escapes = true;
  }

  void escape(const Operand& operand) {
    const int64_t index = owner_of(operand);
    if (index >= 0) values_[index].escapes = true;
  }

  int64_t owner_of(const Operand& operand) const {
    auto* var = operand.as<Var>();
    if (!var) return -1;
    auto it = owner_.find(var);
    return it == owner_.end() ? -1 : it->second;
  }
  void use(int64_t index, int64_t at) { values_[index].end = std::max(values_[index].end, at); }

  std::vector<Value> values_;
  std::unordered_map<const Var*, int64_t> owner_;
};

// The places of a block's values on one device.
struct Plan {
  struct Place {
    int64_t offset = 0;           // in the arena
    const Var* shared = nullptr;  // or the storage of an earlier value, which is reused
  };
  std::unordered_map<const Var*, Place> places;  // keyed by the storage variable
  int64_t arena_bytes = 0;
  int64_t device = 0;
};

// A value that doesn't fit below this limit keeps a storage of its own, so that only its allocation
// fails.
constexpr int64_t kMaxArenaBytes = int64_t{1} << 40;

// First fit, largest first: the classic heuristic for placing intervals. It comes close to the
// lower bound on networks, which have few long-lived values.
void place_constant_sizes(const std::vector<Value>& values, Plan* plan) {
  struct Sized {
    const Value* value;
    int64_t bytes;
  };
  std::vector<Sized> order;
  int64_t last = 0;
  for (const Value& v : values) {
    if (v.escapes || !v.bytes.is_const() || *v.bytes.as_const() > kMaxArenaBytes) continue;
    order.push_back({&v, align_up(std::max<int64_t>(*v.bytes.as_const(), 1))});
    last = std::max(last, v.end);
  }
  if (order.size() < 2) return;
  std::ranges::stable_sort(order, std::greater(), &Sized::bytes);
  Arena arena(last + 1);
  for (const auto& [value, bytes] : order) {
    const Lifetime life{value->begin, value->end};
    const int64_t offset = arena.find(life, bytes);
    if (bytes > kMaxArenaBytes - offset) continue;
    arena.take(life, offset, bytes);
    plan->places[value->storage] = {offset, nullptr};
  }
  plan->arena_bytes = arena.bytes();
}

// Lets a value of symbolic size reuse the storage of a dead value that is provably as large.
void share_symbolic_sizes(const std::vector<Value>& values, Plan* plan) {
  constexpr int kMaxTried = 256;
  struct Block {
    const Var* storage;
    Dim bytes;
  };
  std::vector<Block> blocks;
  using Until = std::pair<int64_t, size_t>;  // binding, block
  std::priority_queue<Until, std::vector<Until>, std::greater<>> used;
  std::set<size_t> unused;
  for (const Value& v : values) {
    if (v.escapes || v.bytes.is_const()) continue;
    for (; !used.empty() && used.top().first < v.begin; used.pop()) {
      unused.insert(used.top().second);
    }
    const auto fits = [&](size_t block) {
      const Dim& bytes = blocks[block].bytes;
      return proves_equal(bytes, v.bytes) || proves_less_equal(v.bytes, bytes);
    };
    int tried = 0;
    auto it = unused.begin();
    while (it != unused.end() && !fits(*it)) {
      it = ++tried < kMaxTried ? std::next(it) : unused.end();
    }
    size_t block = blocks.size();
    if (it == unused.end()) {
      blocks.push_back({v.storage, v.bytes});
    } else {
      block = *it;
      unused.erase(it);
      plan->places[v.storage] = {0, blocks[block].storage};
    }
    used.emplace(v.end, block);
  }
}

class Planner : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    arenas_.clear();  // keyed by the addresses of plans, which may be reused
    plans_.clear();
    plan(function->body);
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto intrinsic = memory_intrinsic(value);
    if (intrinsic == MemoryIntrinsic::kStorage) {
      auto it = places_.find(var.get());
      if (it == places_.end()) return storages_[var.get()] = keep(var, value);
      const auto& [plan, place] = it->second;
      if (place.shared) return storages_[var.get()] = storages_.at(place.shared);
      Operand& arena = arenas_[plan];
      if (!arena) arena = allocate(*plan, var->type);
      offsets_[var.get()] = place.offset;
      return arena;
    }
    if (intrinsic == MemoryIntrinsic::kTensor) {
      auto* call = value.as<Call>();
      auto offset = offsets_.find(source_of_.at(var.get()));
      if (offset == offsets_.end()) return keep(var, value);
      const Attrs attributes = tensor_attrs(Dim(offset->second), stated_shape(*call));
      return keep(var,
                  make_call(call->kind, call->callee, call->args, attributes, call->result_type));
    }
    return keep(var, value);
  }

 private:
  void plan(const BlockRef& block) {
    Lifetimes lifetimes(block);
    std::map<int64_t, std::vector<Value>> by_device;
    for (const Value& value : lifetimes.values()) by_device[value.device].push_back(value);
    for (const auto& [device, values] : by_device) {
      Plan& plan = *plans_.emplace_back(std::make_unique<Plan>());
      plan.device = device;
      place_constant_sizes(values, &plan);
      share_symbolic_sizes(values, &plan);
      for (const auto& [storage, place] : plan.places) places_[storage] = {&plan, place};
    }
    for (const auto& binding : block->bindings) {
      if (memory_intrinsic(binding->value) == MemoryIntrinsic::kTensor) {
        source_of_[binding->var.get()] = binding->value.as<Call>()->args[0].as<Var>();
      }
      for_each_block(binding->value, [this](const BlockRef& inner) { plan(inner); });
    }
  }

  Operand allocate(const Plan& plan, const TypeRef& type) {
    const Dim bytes = align_up(Dim(plan.arena_bytes));
    return builder().bind_typed(
        make_call(CalleeKind::kPacked, kMemoryStorage, {}, storage_attrs(bytes, plan.device), type),
        type, "arena");
  }

  std::vector<std::unique_ptr<Plan>> plans_;
  std::unordered_map<const Var*, std::pair<const Plan*, Plan::Place>> places_;
  std::unordered_map<const Plan*, Operand> arenas_;
  std::unordered_map<const Var*, Operand> storages_;
  std::unordered_map<const Var*, int64_t> offsets_;
  std::unordered_map<const Var*, const Var*> source_of_;
};

}  // namespace

Module plan_memory(const Module& module, PassContext&) {
  Module planned = Planner().run(module);
  verify_memory_plan(planned);
  return planned;
}

}  // namespace tenon::graph
