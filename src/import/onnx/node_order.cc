#include "import/onnx/node_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

namespace tenon::onnx {

namespace {

using Makers = std::unordered_map<std::string_view, size_t>;

// Adds the nodes that make what `node` reads. Names that an inner graph defines itself are looked
// up too: an order that respects more than it must is still one, unless it makes a cycle, and then
// the graph gives a name two meanings.
void collect(const Node& node, const Makers& makers, std::vector<size_t>* out) {
  for (const std::string& name : node.inputs) {
    auto found = makers.find(name);
    if (found != makers.end()) out->push_back(found->second);
  }
  for (const Attribute& a : node.attributes) {
    if (a.graph == nullptr) continue;
    for (const Node& inner : a.graph->nodes) collect(inner, makers, out);
    for (const Value& v : a.graph->outputs) {
      auto found = makers.find(v.name);
      if (found != makers.end()) out->push_back(found->second);
    }
  }
}

}  // namespace

std::vector<size_t> node_order(const std::vector<Node>& nodes) {
  Makers makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (!name.empty()) makers.emplace(name, i);
    }
  }
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<size_t> needs;
    collect(nodes[i], makers, &needs);
    std::sort(needs.begin(), needs.end());
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    for (size_t maker : needs) {
      readers[maker].push_back(i);
      ++waiting[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t reader : readers[i]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() == nodes.size()) return order;
  size_t stuck = 0;
  while (waiting[stuck] == 0) ++stuck;
  throw Error(ErrorKind::Usage, Span::node(nodes[stuck].name), "the graph's nodes form a cycle")
      .found(cat("node '", printable(nodes[stuck].name), "' (", printable(nodes[stuck].op),
                 ") needs its own result, or that of such a node"));
}

}  // namespace tenon::onnx
