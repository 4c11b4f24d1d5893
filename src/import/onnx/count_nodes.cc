#include "import/onnx/count_nodes.h"

#include <limits>
#include <unordered_map>

#include "support/poll.h"
#include "support/text.h"

namespace tenon::onnx {

namespace {

// Saturating.
void add(int64_t* to, int64_t n, int64_t times) {
  int64_t product;
  if (__builtin_mul_overflow(n, times, &product) || __builtin_add_overflow(*to, product, to)) {
    *to = std::numeric_limits<int64_t>::max();
  }
}

// The nodes of the graph or of a function, where a call of a function is one node.
struct Body {
  NodeCount own;
  std::unordered_map<size_t, int64_t> calls;  // by function
  size_t waiting = 0;                         // calls of it that are not counted yet
  int64_t times = 0;                          // how often it is expanded
};

class Counter {
 public:
  explicit Counter(const Model& model) : bodies_(model.functions.size() + 1) {
    for (size_t i = 0; i < model.functions.size(); ++i) {
      const ModelFunction& f = model.functions[i];
      functions_.emplace(function_key(f.domain, f.name, f.overload), i + 1);
    }
    read(model.graph.nodes, &bodies_[0]);
    for (size_t i = 0; i < model.functions.size(); ++i) {
      read(model.functions[i].nodes, &bodies_[i + 1]);
    }
  }

  // Visits callers before the functions that they call. Functions that call themselves are not
  // counted: the importer refuses them.
  NodeCount run() {
    for (const Body& body : bodies_) {
      for (const auto& [callee, _] : body.calls) ++bodies_[callee].waiting;
    }
    bodies_[0].times = 1;
    std::vector<size_t> ready;
    for (size_t i = 0; i < bodies_.size(); ++i) {
      if (bodies_[i].waiting == 0) ready.push_back(i);
    }
    NodeCount out;
    while (!ready.empty()) {
      poll();
      const Body& body = bodies_[ready.back()];
      ready.pop_back();
      add(&out.nodes, body.own.nodes, body.times);
      if (body.times > 0) {
        for (const auto& [op, n] : body.own.operators) add(&out.operators[op], n, body.times);
      }
      for (const auto& [callee, calls] : body.calls) {
        add(&bodies_[callee].times, calls, body.times);
        if (--bodies_[callee].waiting == 0) ready.push_back(callee);
      }
    }
    return out;
  }

 private:
  void read(const std::vector<Node>& nodes, Body* body) {
    for (const Node& n : nodes) {
      poll();
      ++body->own.nodes;
      auto function = functions_.find(function_key(n.domain, n.op, n.overload));
      if (function != functions_.end()) {
        ++body->calls[function->second];
        continue;
      }
      ++body->own.operators[op_text(n)];
      for (const Attribute& a : n.attributes) {
        if (a.graph != nullptr) read(a.graph->nodes, body);
      }
    }
  }

  std::map<std::string, size_t> functions_;  // indices in bodies_
  std::vector<Body> bodies_;                 // the graph, then the functions
};

}  // namespace

NodeCount count_nodes(const Model& model) {
  return Counter(model).run();
}

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
  return cat(domain, "\n", name, "\n", overload);
}

std::string op_text(const std::string& domain, const std::string& op) {
  return domain.empty() ? op : cat(domain, ":", op);
}

std::string op_text(const Node& node) {
  return op_text(node.domain, node.op);
}

}  // namespace tenon::onnx
