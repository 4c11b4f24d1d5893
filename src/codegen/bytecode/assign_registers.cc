#include "codegen/bytecode/assign_registers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "support/error.h"
#include "support/poll.h"

namespace tenon::codegen {

namespace {

// Groups of virtual registers that share a frame register: a union-find forest whose roots have the
// live ranges of their group.
class Groups {
 public:
  explicit Groups(const Liveness& liveness)
      : parents_(liveness.ranges.size()), ranges_(liveness.ranges.size()) {
    std::iota(parents_.begin(), parents_.end(), 0);
    for (size_t r = 0; r < ranges_.size(); ++r) {
      for (const LiveRange& range : liveness.ranges[r]) ranges_[r].emplace(range.from, range.to);
    }
  }

  Register root(Register r) {
    while (parents_[r] != r) r = parents_[r] = parents_[parents_[r]];
    return r;
  }

  // Joins the groups of a and b unless both are live at some position. The smaller set of ranges is
  // merged into the larger, so that each range moves at most a logarithmic number of times.
  void join(Register a, Register b) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    if (ranges_[a].size() < ranges_[b].size()) std::swap(a, b);
    for (const auto& [from, to] : ranges_[b]) {
      const auto behind = ranges_[a].lower_bound(from);
      if (behind != ranges_[a].end() && behind->first < to) return;
      if (behind != ranges_[a].begin() && std::prev(behind)->second > from) return;
    }
    ranges_[a].merge(ranges_[b]);
    parents_[b] = a;
  }

  bool is_live(Register root) const { return !ranges_[root].empty(); }
  // From the first position of any range of the group to the end of the last.
  LiveRange hull(Register root) const {
    return {ranges_[root].begin()->first, ranges_[root].rbegin()->second};
  }

 private:
  std::vector<Register> parents_;
  std::vector<std::map<uint32_t, uint32_t>> ranges_;  // start, end; only for roots
};

void coalesce(const VirtualCode& code, Groups* groups) {
  struct Copy {
    uint32_t depth;
    Register from, to;
  };
  std::vector<Copy> copies;
  for (BlockId id : code.order()) {
    const VirtualBlock& block = code.block(id);
    for (size_t i = 0; i < block.args.size(); ++i) {
      if (!block.args[i].is_register()) continue;
      copies.push_back(
          {code.loop_depth(id), block.args[i].index(), code.block(block.target).params[i]});
    }
  }
  std::ranges::stable_sort(copies, std::greater(), &Copy::depth);
  Ticker ticker;
  for (const Copy& copy : copies) {
    ticker.tick();
    if (code.borrows(copy.from) == code.borrows(copy.to)) groups->join(copy.from, copy.to);
  }
}

}  // namespace

Assignment assign_registers(const VirtualCode& code, const Liveness& liveness) {
  Groups groups(liveness);
  coalesce(code, &groups);

  // Whether a register borrows, it does so throughout the function: these share none with others.
  struct Interval {
    LiveRange hull;
    Register root;
  };
  std::vector<Interval> intervals;
  for (Register r = 0; r < code.register_count(); ++r) {
    if (groups.root(r) == r && groups.is_live(r)) intervals.push_back({groups.hull(r), r});
  }
  std::ranges::stable_sort(intervals, std::less(), [](const Interval& i) { return i.hull.from; });

  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> of_root(code.register_count(), kNone);
  const std::vector<Register>& params = code.block(code.order().front()).params;
  Assignment out;
  for (Register param : params) {
    uint32_t& place = of_root[groups.root(param)];
    TENON_ASSERT(place == kNone, "two parameters of a function share a register");
    place = out.count++;
  }
  using Until = std::pair<uint32_t, Register>;  // position, root
  std::priority_queue<Until, std::vector<Until>, std::greater<>> taken;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free[2];  // [borrows]
  Ticker ticker;
  for (const auto& [hull, root] : intervals) {
    ticker.tick();
    while (!taken.empty() && taken.top().first <= hull.from) {
      const Register ended = taken.top().second;
      free[code.borrows(ended)].push(of_root[ended]);
      taken.pop();
    }
    uint32_t& place = of_root[root];
    auto& unused = free[code.borrows(root)];
    if (place == kNone) {
      if (unused.empty()) {
        place = out.count++;
      } else {
        place = unused.top();
        unused.pop();
      }
    }
    taken.emplace(hull.to, root);
  }
  out.registers.resize(code.register_count(), kNone);
  for (Register r = 0; r < code.register_count(); ++r) {
    out.registers[r] = of_root[groups.root(r)];
  }
  return out;
}

}  // namespace tenon::codegen
