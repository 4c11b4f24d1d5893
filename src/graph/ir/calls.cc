#include "graph/ir/calls.h"

#include <algorithm>
#include <map>

namespace tenon::graph {

Map<String, FunctionRef> reachable(const Map<String, FunctionRef>& kept,
                                   const Map<String, FunctionRef>& all) {
  Map<String, FunctionRef> out = kept;
  std::vector<FunctionRef> pending;
  for (const auto& [name, function] : kept) pending.push_back(function);
  while (!pending.empty()) {
    const FunctionRef next = pending.back();
    pending.pop_back();
    for_each_callee(*next->body, [&](const String& name, const Call*) {
      const FunctionRef* found = all.find(name);
      if (!found || out.contains(name)) return;
      out.set(name, *found);
      pending.push_back(*found);
    });
  }
  return out;
}

namespace {

// Tarjan's strongly connected components, with a stack of its own: chains of calls may be long.
class Components {
 public:
  explicit Components(const Map<String, FunctionRef>& functions) {
    for (const auto& [name, function] : functions) {
      index_.emplace(name, nodes_.size());
      nodes_.push_back({name, function, {}, kUnseen, 0, false});
    }
    for (Node& node : nodes_) {
      for_each_callee(*node.function->body, [&](const String& callee, const Call* call) {
        const auto found = index_.find(callee);
        if (call && found != index_.end()) node.callees.push_back(found->second);
      });
    }
  }

  std::set<String> recursive() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].order == kUnseen) visit(i);
    }
    return std::move(recursive_);
  }

 private:
  static constexpr size_t kUnseen = SIZE_MAX;
  struct Node {
    String name;
    FunctionRef function;
    std::vector<size_t> callees;
    size_t order, least;
    bool waits;  // is on the stack
  };
  struct Visit {
    size_t node, next;
  };

  void visit(size_t root) {
    std::vector<Visit> visits = {enter(root)};
    while (!visits.empty()) {
      Visit& at = visits.back();
      Node& node = nodes_[at.node];
      if (at.next == node.callees.size()) {
        leave(at.node);
        const size_t least = node.least;
        visits.pop_back();
        if (!visits.empty()) lower(visits.back().node, least);
        continue;
      }
      const size_t callee = node.callees[at.next++];
      if (callee == at.node) recursive_.insert(node.name);
      if (nodes_[callee].order == kUnseen) {
        visits.push_back(enter(callee));
      } else if (nodes_[callee].waits) {
        lower(at.node, nodes_[callee].order);
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

  // Ends a component at the function that was entered first of it.
  void leave(size_t i) {
    if (nodes_[i].least != nodes_[i].order) return;
    const bool several = stack_.back() != i;
    for (bool more = true; more;) {
      const size_t member = stack_.back();
      stack_.pop_back();
      nodes_[member].waits = false;
      if (several) recursive_.insert(nodes_[member].name);
      more = member != i;
    }
  }

  std::map<String, size_t> index_;
  std::vector<Node> nodes_;
  std::vector<size_t> stack_;
  size_t seen_ = 0;
  std::set<String> recursive_;
};

}  // namespace

std::set<String> recursive_functions(const Map<String, FunctionRef>& functions) {
  return Components(functions).recursive();
}

}  // namespace tenon::graph
