#include "codegen/bytecode/live_set.h"

namespace tenon::codegen {

LiveSets::LiveSets(uint32_t register_count) {
  while (uint64_t{1} << (kLeafBits + kNodeBits * levels_) < register_count) ++levels_;
}

bool LiveSets::contains(Set set, uint32_t element) const {
  for (uint32_t level = levels_; level > 0; --level) set = nodes_[set][slot(element, level)];
  return leaves_[set] >> (element % 64) & 1;
}

LiveSets::Set LiveSets::leaf(uint64_t bits) {
  if (!bits) return 0;
  leaves_.push_back(bits);
  return static_cast<Set>(leaves_.size() - 1);
}

LiveSets::Set LiveSets::node(const Node& children) {
  if (children == Node{}) return 0;
  nodes_.push_back(children);
  return static_cast<Set>(nodes_.size() - 1);
}

LiveSets::Set LiveSets::change(Set set, uint32_t element, uint32_t level, bool present) {
  if (level == 0) {
    const uint64_t bit = uint64_t{1} << (element % 64), old = leaves_[set];
    const uint64_t bits = present ? old | bit : old & ~bit;
    return bits == old ? set : leaf(bits);
  }
  const Set child = nodes_[set][slot(element, level)];
  const Set changed = change(child, element, level - 1, present);
  if (changed == child) return set;
  Node children = nodes_[set];
  children[slot(element, level)] = changed;
  return node(children);
}

LiveSets::Set LiveSets::unite(Set a, Set b, uint32_t level) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (level == 0) {
    const uint64_t bits = leaves_[a] | leaves_[b];
    return bits == leaves_[a] ? a : bits == leaves_[b] ? b : leaf(bits);
  }
  Node children{};
  for (uint32_t i = 0; i < 1 << kNodeBits; ++i) {
    children[i] = unite(nodes_[a][i], nodes_[b][i], level - 1);
  }
  return children == nodes_[a] ? a : children == nodes_[b] ? b : node(children);
}

}  // namespace tenon::codegen
