// The strongly connected components of a graph, such as that of a program's calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon {

// Tarjan's algorithm, with a stack of its own: chains of calls may be long.
class Components {
 public:
  // edges[i]: the nodes that node i leads to.
  explicit Components(std::vector<std::vector<size_t>> edges) : edges_(std::move(edges)) {
    nodes_.resize(edges_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].order == kUnseen) visit(i);
    }
  }

  // Nodes have equal numbers if each leads to the other.
  size_t component_of(size_t node) const { return nodes_[node].component; }
  // Whether the node leads back to itself.
  bool is_on_cycle(size_t node) const { return nodes_[node].on_cycle; }

 private:
  static constexpr size_t kUnseen = SIZE_MAX;
  struct Node {
    size_t order = kUnseen, least = 0, component = 0;
    bool waits = false;  // is on the stack
    bool on_cycle = false;
  };
  struct Visit {
    size_t node, next;
  };

  void visit(size_t root) {
    std::vector<Visit> visits = {enter(root)};
    while (!visits.empty()) {
      Visit& at = visits.back();
      const size_t node = at.node;
      if (at.next == edges_[node].size()) {
        leave(node);
        visits.pop_back();
        if (!visits.empty()) lower(visits.back().node, nodes_[node].least);
        continue;
      }
      const size_t to = edges_[node][at.next++];
      if (to == node) nodes_[node].on_cycle = true;
      if (nodes_[to].order == kUnseen) {
        visits.push_back(enter(to));
      } else if (nodes_[to].waits) {
        lower(node, nodes_[to].order);
      }
    }
  }

  Visit enter(size_t i) {
    nodes_[i].order = nodes_[i].least = seen_++;
    nodes_[i].waits = true;
    stack_.push_back(i);
    return {i, 0};
  }

  void lower(size_t i, size_t least) { nodes_[i].least = std::min(nodes_[i].least, least); }

  // Ends a component at the node that was entered first of it.
  void leave(size_t i) {
    if (nodes_[i].least != nodes_[i].order) return;
    const bool several = stack_.back() != i;
    for (bool more = true; more;) {
      const size_t member = stack_.back();
      stack_.pop_back();
      nodes_[member].waits = false;
      nodes_[member].component = i;
      if (several) nodes_[member].on_cycle = true;
      more = member != i;
    }
  }

  std::vector<std::vector<size_t>> edges_;
  std::vector<Node> nodes_;
  std::vector<size_t> stack_;
  size_t seen_ = 0;
};

}  // namespace tenon
