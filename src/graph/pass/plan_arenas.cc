#include "graph/pass/plan_arenas.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "graph/ir/intrinsic.h"
#include "graph/pass/arena.h"
#include "support/rounding.h"

namespace tenon::graph {
namespace {

// A value that doesn't fit below this limit keeps a storage of its own, so that only its allocation
// fails.
constexpr int64_t kMostBytes = int64_t{1} << 40;

// What an arena may hold for blocks that may not run, such as a branch that isn't taken: this much,
// or some times what its function needs in any case. Calls take that memory for nothing.
constexpr int64_t kSpare = int64_t{16} << 20;
constexpr int64_t kSpareFactor = 8;
// Smaller blocks never get arenas of their own.
constexpr int64_t kLeastOwn = int64_t{1} << 20;

// A group of values, which have one place.
struct Sized {
  const PlannedValue* leader;
  Lifetime life;
  int64_t bytes;
  int64_t scope;  // around all of them
};

class Planner {
 public:
  Planner(const Lifetimes& lifetimes, int64_t device) : lifetimes_(lifetimes), device_(device) {}

  std::vector<PlannedArena> run() {
    place(0, groups());
    return std::move(arenas_);
  }

 private:
  using Offsets = std::vector<std::pair<const PlannedValue*, int64_t>>;

  std::vector<Sized> groups() const {
    std::vector<Sized> out;
    for (const PlannedValue& v : lifetimes_.values()) {
      if (v.device != device_ || v.group.empty()) continue;
      if (const auto group = sized(v)) out.push_back(*group);
    }
    return out;
  }

  // Nothing if a size isn't constant, or they differ so much that one place would waste memory.
  std::optional<Sized> sized(const PlannedValue& leader) const {
    const std::vector<PlannedValue>& values = lifetimes_.values();
    const PlannedValue& first = values[leader.group[0]];
    Sized out{&leader, first.life, 1, first.scope};
    int64_t least = kMostBytes;
    for (const size_t i : leader.group) {
      const auto bytes = values[i].bytes.as_const();
      if (!bytes || *bytes > kMostBytes) return std::nullopt;
      out.bytes = std::max(out.bytes, *bytes);
      least = std::min(least, *bytes);
      out.life.first = std::min(out.life.first, values[i].life.first);
      out.life.last = std::max(out.life.last, values[i].life.last);
      out.scope = lifetimes_.common(out.scope, values[i].scope);
    }
    if (out.bytes - least > kSpare) return std::nullopt;
    out.bytes = round_up(out.bytes, kTensorAlignment);
    return out;
  }

  // Makes arenas of values in the block `scope` and in blocks within it.
  void place(int64_t scope, const std::vector<Sized>& values) {
    std::vector<Sized> shared;
    std::map<int64_t, std::vector<Sized>> inside;
    for (const Sized& v : values) {
      (v.scope == scope ? shared : inside[lifetimes_.child(scope, v.scope)]).push_back(v);
    }
    const bool fits =
        inside.empty() || sum(values) <= kSpare ||
        arena_of(values).bytes() <= std::max(kSpare, kSpareFactor * arena_of(shared).bytes());
    for (const auto& [block, inner] : inside) {
      if (fits || sum(inner) <= kLeastOwn) {
        shared.insert(shared.end(), inner.begin(), inner.end());
      } else {
        place(block, inner);
      }
    }
    make_arena(scope, shared);
  }

  static int64_t sum(const std::vector<Sized>& values) {
    int64_t bytes = 0;
    for (const Sized& v : values) bytes = std::min(bytes + v.bytes, kMostBytes);
    return bytes;
  }

  // First fit, largest first: the classic heuristic for placing intervals. It comes close to the
  // lower bound on networks, which have few long-lived values. Adds the offsets of those that fit.
  Arena arena_of(std::vector<Sized> values, Offsets* offsets = nullptr) const {
    std::ranges::stable_sort(values, std::greater(), &Sized::bytes);
    // Only the order of bindings matters: their numbers among those at which a lifetime ends or
    // begins keep the arena as small as the block.
    std::vector<int64_t> ends;
    for (const Sized& v : values) ends.insert(ends.end(), {v.life.first, v.life.last});
    std::ranges::sort(ends);
    const auto number = [&](int64_t at) {
      return std::ranges::lower_bound(ends, at) - ends.begin();
    };
    Arena arena(std::ssize(ends));
    for (const Sized& v : values) {
      const Lifetime life = {number(v.life.first), number(v.life.last)};
      const int64_t offset = arena.find(life, v.bytes);
      if (v.bytes > kMostBytes - offset) continue;
      arena.take(life, offset, v.bytes);
      if (offsets) offsets->emplace_back(v.leader, offset);
    }
    return arena;
  }

  void make_arena(int64_t scope, const std::vector<Sized>& values) {
    Offsets offsets;
    const Arena arena = arena_of(values, &offsets);
    if (offsets.empty()) return;
    const std::vector<PlannedValue>& all = lifetimes_.values();
    PlannedArena made;
    StorageHome home(lifetimes_, scope);
    bool leaves_loop = false;
    for (const auto& [leader, offset] : offsets) {
      for (const size_t i : leader->group) {
        made.offsets[all[i].storage] = offset;
        leaves_loop |= home.add(all[i]);
      }
    }
    // One value in its own storage, in no loop, gains nothing.
    if (made.offsets.size() == 1 && !leaves_loop) return;
    made.bytes = arena.bytes();
    made.before = home.before();
    arenas_.push_back(std::move(made));
  }

  const Lifetimes& lifetimes_;
  const int64_t device_;
  std::vector<PlannedArena> arenas_;
};

}  // namespace

std::vector<PlannedArena> plan_arenas(const Lifetimes& lifetimes, int64_t device) {
  return Planner(lifetimes, device).run();
}

}  // namespace tenon::graph
