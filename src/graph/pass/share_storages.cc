#include "graph/pass/share_storages.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string_view>
#include <utility>

namespace tenon::graph {
namespace {

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

// A storage for values that take turns.
struct Storage {
  const Var* storage;
  size_t size;    // its number
  int64_t scope;  // of its allocation
};

}  // namespace

SharedStorages share_storages(const Lifetimes& lifetimes, int64_t device) {
  constexpr int kMaxTried = 256;
  SharedStorages out;
  SizeProofs proofs;
  std::vector<Storage> blocks;
  using Until = std::pair<int64_t, size_t>;  // binding, block
  std::priority_queue<Until, std::vector<Until>, std::greater<>> used;
  std::set<size_t> unused;
  std::unordered_map<size_t, size_t> of_group;  // the storage of a group's values, by the leader
  const std::vector<PlannedValue>& values = lifetimes.values();
  for (const PlannedValue& v : values) {
    if (v.device != device || v.escapes || v.bytes.is_const()) continue;
    for (; !used.empty() && used.top().first < v.life.first; used.pop()) {
      unused.insert(used.top().second);
    }
    const size_t size = proofs.number(v.bytes);
    const auto fits = [&](size_t at) {
      const Storage& block = blocks[at];
      return lifetimes.encloses(block.scope, v.scope) && proofs.fits(size, block.size);
    };
    const auto grouped = of_group.find(v.leader);
    if (grouped != of_group.end() && fits(grouped->second)) {
      out.replaced_by[v.storage] = blocks[grouped->second].storage;
      continue;  // it is in use until the end of all of the group
    }
    int tried = 0;
    auto it = unused.begin();
    while (it != unused.end() && !fits(*it)) {
      it = ++tried < kMaxTried ? std::next(it) : unused.end();
    }
    size_t block = blocks.size();
    if (it == unused.end()) {
      StorageHome home(lifetimes, /*outermost=*/0);
      if (home.add(v)) {
        out.moved.push_back({v.storage, v.bytes, home.before()});
        out.replaced_by[v.storage] = v.storage;
      }
      blocks.push_back({v.storage, size, home.scope()});
    } else {
      block = *it;
      unused.erase(it);
      out.replaced_by[v.storage] = blocks[block].storage;
    }
    int64_t until = v.life.last;
    for (const size_t i : values[v.leader].group) until = std::max(until, values[i].life.last);
    used.emplace(until, block);
    of_group.emplace(v.leader, block);
  }
  return out;
}

}  // namespace tenon::graph
