// Persistent sets of registers for liveness, so that neighbouring blocks' sets share what they have
// in common. A set is a radix tree, and equal subtrees are mostly shared; changing an element
// copies the path to it, and comparing two sets takes time in proportion to their difference.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tenon::codegen {

// Owns the nodes of all its sets. A set is an index; 0 is the empty set.
class LiveSets {
 public:
  using Set = uint32_t;

  explicit LiveSets(uint32_t register_count);

  bool contains(Set set, uint32_t element) const;
  Set insert(Set set, uint32_t element) { return change(set, element, levels_, true); }
  Set erase(Set set, uint32_t element) { return change(set, element, levels_, false); }
  Set unite(Set a, Set b) { return unite(a, b, levels_); }
  // Calls f on each element of `a` that isn't in `b`, in ascending order.
  template <class F>
  void for_each_missing(Set a, Set b, const F& f) const {
    missing(a, b, levels_, 0, f);
  }

 private:
  static constexpr uint32_t kLeafBits = 6, kNodeBits = 4;
  using Node = std::array<Set, 1 << kNodeBits>;

  // The index of the child that contains the element, for a node at `level`.
  static uint32_t slot(uint32_t element, uint32_t level) {
    return (element >> (kLeafBits + kNodeBits * (level - 1))) & ((1 << kNodeBits) - 1);
  }
  Set leaf(uint64_t bits);
  Set node(const Node& children);
  Set change(Set set, uint32_t element, uint32_t level, bool present);
  Set unite(Set a, Set b, uint32_t level);

  template <class F>
  void missing(Set a, Set b, uint32_t level, uint32_t first, const F& f) const {
    if (a == b || a == 0) return;
    if (level == 0) {
      for (uint64_t bits = leaves_[a] & ~leaves_[b]; bits; bits &= bits - 1) {
        f(first + static_cast<uint32_t>(__builtin_ctzll(bits)));
      }
      return;
    }
    for (uint32_t i = 0; i < 1 << kNodeBits; ++i) {
      missing(nodes_[a][i], nodes_[b][i], level - 1,
              first + (i << (kLeafBits + kNodeBits * (level - 1))), f);
    }
  }

  uint32_t levels_ = 0;              // levels of nodes above the leaves
  std::vector<Node> nodes_{Node{}};  // the first is the empty set
  std::vector<uint64_t> leaves_{0};
};

}  // namespace tenon::codegen
