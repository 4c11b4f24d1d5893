#include "graph/pass/plan_memory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/arena.h"
#include "graph/pass/lifetimes.h"
#include "graph/pass/verify_memory_plan.h"

namespace tenon::graph {
namespace {

int64_t align_up(int64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

Dim align_up(const Dim& bytes) {
  return ceildiv(bytes, Dim(kTensorAlignment)) * Dim(kTensorAlignment);
}

// The places of a function's values on one device.
struct Plan {
  struct Place {
    int64_t offset = 0;           // in the arena
    const Var* shared = nullptr;  // or the storage of an earlier value, which is reused
  };
  std::unordered_map<const Var*, Place> places;  // keyed by the storage variable
  int64_t arena_bytes = 0;
  int64_t arena_scope = 0;  // where it is allocated
  const Binding* arena_before = nullptr;
  int64_t device = 0;
};

// A value that doesn't fit below this limit keeps a storage of its own, so that only its allocation
// fails.
constexpr int64_t kMaxArenaBytes = int64_t{1} << 40;

// Where a storage is allocated that values in several blocks use: in the innermost block around
// them, but outside of loops, before the first of them.
class Home {
 public:
  explicit Home(const Lifetimes& lifetimes) : lifetimes_(lifetimes) {}

  void add(const PlannedValue& value) {
    const int64_t outside = lifetimes_.outside_loops(value.scope, value.bytes);
    scope_ = scope_ < 0 ? outside : lifetimes_.common(scope_, outside);
    if (!first_ || value.life.first < first_->life.first) first_ = &value;
  }
  int64_t scope() const { return scope_; }
  const Binding* before() const {
    const Binding* entry = lifetimes_.entry(scope_, first_->scope);
    return entry ? entry : first_->binding;
  }

 private:
  const Lifetimes& lifetimes_;
  int64_t scope_ = -1;
  const PlannedValue* first_ = nullptr;
};

// First fit, largest first: the classic heuristic for placing intervals. It comes close to the
// lower bound on networks, which have few long-lived values.
void place_constant_sizes(const Lifetimes& lifetimes, Plan* plan) {
  struct Sized {
    const PlannedValue* leader;
    Lifetime life;
    int64_t bytes;
  };
  const std::vector<PlannedValue>& values = lifetimes.values();
  std::vector<Sized> order;
  bool loops = false;
  for (const PlannedValue& v : values) {
    if (v.device != plan->device || v.group.empty()) continue;
    Sized sized{&v, values[v.group[0]].life, 1};
    for (const size_t i : v.group) {
      const auto bytes = values[i].bytes.as_const();
      sized.bytes = bytes && sized.bytes >= 0 && *bytes <= kMaxArenaBytes
                        ? std::max(sized.bytes, *bytes)
                        : -1;
      sized.life.first = std::min(sized.life.first, values[i].life.first);
      sized.life.last = std::max(sized.life.last, values[i].life.last);
      loops |= lifetimes.outside_loops(values[i].scope, values[i].bytes) != values[i].scope;
    }
    if (sized.bytes < 0) continue;
    sized.bytes = align_up(sized.bytes);
    order.push_back(sized);
  }
  // One value in its own storage, in no loop, gains nothing.
  if (order.empty() || (order.size() == 1 && order[0].leader->group.size() == 1 && !loops)) return;
  std::ranges::stable_sort(order, std::greater(), &Sized::bytes);
  Arena arena(lifetimes.last() + 1);
  Home home(lifetimes);
  for (const Sized& sized : order) {
    const int64_t offset = arena.find(sized.life, sized.bytes);
    if (sized.bytes > kMaxArenaBytes - offset) continue;
    arena.take(sized.life, offset, sized.bytes);
    for (const size_t i : sized.leader->group) {
      plan->places[values[i].storage] = {offset, nullptr};
      home.add(values[i]);
    }
  }
  plan->arena_bytes = arena.bytes();
  plan->arena_scope = home.scope();
  plan->arena_before = home.before();
}

// Whether sizes provably fit into others. A proof about sums of products takes long, so each is
// tried once, and only if the sizes at some values of their symbols don't refute it.
class SizeProofs {
 public:
  // The number of a size; equal sizes have the same.
  size_t number(const Dim& bytes) {
    const auto [at, is_new] = numbers_.try_emplace(bytes, sizes_.size());
    if (is_new) sizes_.push_back({bytes, samples_of(bytes)});
    return at->second;
  }
  bool fits(size_t bytes, size_t room) {
    if (bytes == room) return true;
    const auto [at, is_new] = fits_.try_emplace({bytes, room}, false);
    if (is_new) {
      const Size &small = sizes_[bytes], &large = sizes_[room];
      at->second =
          !refuted(small.samples, large.samples) &&
          (proves_equal(large.bytes, small.bytes) || proves_less_equal(small.bytes, large.bytes));
    }
    return at->second;
  }

 private:
  // The size where all symbols are 1, where all are large, and where they differ.
  using Samples = std::array<std::optional<int64_t>, 3>;
  static Samples samples_of(const Dim& bytes) {
    const auto mixed = [](std::string_view symbol) -> std::optional<int64_t> {
      return 1 + static_cast<int64_t>(std::hash<std::string_view>{}(symbol) % 97);
    };
    return {evaluate(bytes, [](std::string_view) { return std::optional<int64_t>(1); }),
            evaluate(bytes, [](std::string_view) { return std::optional<int64_t>(1000); }),
            evaluate(bytes, mixed)};
  }
  static bool refuted(const Samples& small, const Samples& large) {
    for (size_t i = 0; i < small.size(); ++i) {
      if (small[i] && large[i] && *small[i] > *large[i]) return true;
    }
    return false;
  }

  struct Size {
    Dim bytes;
    Samples samples;
  };
  struct Hash {
    size_t operator()(const Dim& d) const { return hash(d); }
  };
  std::unordered_map<Dim, size_t, Hash> numbers_;
  std::vector<Size> sizes_;
  std::map<std::pair<size_t, size_t>, bool> fits_;
};

// A storage of symbolic size, for values that take turns.
struct Shared {
  const Var* storage;
  Dim bytes;
  size_t size;            // its number
  int64_t scope;          // of its allocation
  const Binding* before;  // null where the first of the values is made
};

// Lets a value of symbolic size reuse the storage of a dead value that is provably as large.
// Storages are allocated outside of loops.
std::vector<Shared> share_symbolic_sizes(const Lifetimes& lifetimes, Plan* plan) {
  constexpr int kMaxTried = 256;
  SizeProofs proofs;
  std::vector<Shared> blocks;
  using Until = std::pair<int64_t, size_t>;  // binding, block
  std::priority_queue<Until, std::vector<Until>, std::greater<>> used;
  std::set<size_t> unused;
  std::unordered_map<size_t, size_t> of_group;  // the storage of a group's values, by the leader
  const std::vector<PlannedValue>& values = lifetimes.values();
  for (const PlannedValue& v : values) {
    if (v.device != plan->device || v.escapes || v.bytes.is_const()) continue;
    for (; !used.empty() && used.top().first < v.life.first; used.pop()) {
      unused.insert(used.top().second);
    }
    const size_t size = proofs.number(v.bytes);
    const auto fits = [&](size_t at) {
      const Shared& block = blocks[at];
      return lifetimes.encloses(block.scope, v.scope) && proofs.fits(size, block.size);
    };
    const auto grouped = of_group.find(v.leader);
    if (grouped != of_group.end() && fits(grouped->second)) {
      plan->places[v.storage] = {0, blocks[grouped->second].storage};
      continue;  // it is in use until the end of all of the group
    }
    int tried = 0;
    auto it = unused.begin();
    while (it != unused.end() && !fits(*it)) {
      it = ++tried < kMaxTried ? std::next(it) : unused.end();
    }
    size_t block = blocks.size();
    if (it == unused.end()) {
      Home home(lifetimes);
      home.add(v);
      blocks.push_back({v.storage, v.bytes, size, home.scope(),
                        home.scope() == v.scope ? nullptr : home.before()});
      if (blocks[block].before) plan->places[v.storage] = {0, v.storage};
    } else {
      block = *it;
      unused.erase(it);
      plan->places[v.storage] = {0, blocks[block].storage};
    }
    int64_t until = v.life.last;
    for (const size_t i : values[v.leader].group) until = std::max(until, values[i].life.last);
    used.emplace(until, block);
    of_group.emplace(v.leader, block);
  }
  std::erase_if(blocks, [](const Shared& block) { return !block.before; });
  return blocks;
}

class Planner : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    // All are keyed by addresses, which may be reused.
    plans_.clear();
    places_.clear();
    arenas_.clear();
    storages_.clear();
    offsets_.clear();
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
      auto it = places_.find(var.get());
      if (it == places_.end()) return storages_[var.get()] = keep(var, value);
      const auto& [plan, place] = it->second;
      if (place.shared) return storages_[var.get()] = storages_.at(place.shared);
      offsets_[var.get()] = place.offset;
      return arenas_.at(plan);
    }
    if (intrinsic == MemoryIntrinsic::kTensor) {
      auto* call = value.as<Call>();
      auto source = source_of_.find(var.get());
      if (source == source_of_.end()) return keep(var, value);
      auto offset = offsets_.find(source->second);
      if (offset == offsets_.end()) return keep(var, value);
      return keep(var, tensor_call(call->args[0], Dim(offset->second),
                                   call->result_type.cast<TensorType>()));
    }
    return keep(var, value);
  }

 private:
  void plan(const Lifetimes& lifetimes, int64_t device) {
    Plan& plan = *plans_.emplace_back(std::make_unique<Plan>());
    plan.device = device;
    place_constant_sizes(lifetimes, &plan);
    const std::vector<Shared> hoisted = share_symbolic_sizes(lifetimes, &plan);
    for (const auto& [storage, place] : plan.places) places_[storage] = {&plan, place};
    if (plan.arena_before) {
      allocated_before_[plan.arena_before].push_back([this, &plan] {
        arenas_[&plan] = allocate(align_up(Dim(plan.arena_bytes)), plan.device, "arena");
      });
    }
    for (const Shared& shared : hoisted) {
      allocated_before_[shared.before].push_back([this, shared, device] {
        storages_[shared.storage] = allocate(shared.bytes, device, shared.storage->name);
      });
    }
  }

  Operand allocate(const Dim& bytes, int64_t device, std::string_view name) {
    return builder().bind_stated(storage_call(bytes, device), name);
  }

  std::vector<std::unique_ptr<Plan>> plans_;
  std::unordered_map<const Var*, std::pair<const Plan*, Plan::Place>> places_;
  std::unordered_map<const Plan*, Operand> arenas_;
  std::unordered_map<const Var*, Operand> storages_;
  std::unordered_map<const Var*, int64_t> offsets_;
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
