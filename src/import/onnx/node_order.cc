#include "import/onnx/node_order.h"
#include "support/poll.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

namespace tenon::onnx {

namespace {

using Makers = std::unordered_map<std::string_view, size_t>;

// Adds the nodes that compute what `node` and its inner graphs read. `hidden` counts the names that
// the surrounding inner graphs redefine.
void collect(const Node& node, const Makers& makers,
             std::unordered_map<std::string_view, int>* hidden, std::vector<size_t>* out) {
  auto add = [&](const std::string& name) {
    auto shadow = hidden->find(name);
    if (shadow != hidden->end() && shadow->second > 0) return;
    auto found = makers.find(name);
    if (found != makers.end()) out->push_back(found->second);
  };
  for (const std::string& name : node.inputs) add(name);
  for (const Attribute& a : node.attributes) {
    if (a.graph == nullptr) continue;
    auto hide = [&](int change) {
      for (const Value& v : a.graph->inputs) (*hidden)[v.name] += change;
      for (const TensorData& t : a.graph->initializers) (*hidden)[t.name] += change;
      for (const Node& inner : a.graph->nodes) {
        for (const std::string& name : inner.outputs) (*hidden)[name] += change;
      }
    };
    hide(1);
    for (const Node& inner : a.graph->nodes) collect(inner, makers, hidden, out);
    for (const Value& v : a.graph->outputs) add(v.name);
    hide(-1);
  }
}

bool is_constant(const Node& n) {
  return n.op == "Constant" && n.domain.empty() && n.outputs.size() == 1;
}

}  // namespace

std::vector<size_t> node_order(const std::vector<Node>& nodes, const std::string& file) {
  Makers makers;
  std::vector<bool> replaced(nodes.size(), false);
  Ticker ticker;
  for (size_t i = 0; i < nodes.size(); ++i) {
    ticker.tick();
    for (const std::string& name : nodes[i].outputs) {
      if (name.empty()) continue;
      auto [made, first] = makers.emplace(name, i);
      if (!first && is_constant(nodes[i]) && is_constant(nodes[made->second])) {
        replaced[made->second] = true;
        made->second = i;
      }
    }
  }
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (replaced[i]) continue;
    ticker.tick();
    std::vector<size_t> needs;
    std::unordered_map<std::string_view, int> hidden;
    collect(nodes[i], makers, &hidden, &needs);
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
  size_t done = 0;
  while (!ready.empty()) {
    ticker.tick();
    size_t i = ready.top();
    ready.pop();
    ++done;
    if (!replaced[i]) order.push_back(i);
    for (size_t reader : readers[i]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (done == nodes.size()) return order;
  size_t stuck = 0;
  while (waiting[stuck] == 0) ++stuck;
  throw Error(ErrorKind::Usage, Span::node(nodes[stuck].name), "the graph's nodes form a cycle")
      .where(cat("node '", printable(nodes[stuck].name), "' (", printable(nodes[stuck].op), ") of ",
                 printable(file)))
      .found("it depends on its own result, or on a node that does")
      .expected("nodes that depend only on results of others")
      .help("export the model again, or correct it");
}

}  // namespace tenon::onnx
