#include "import/onnx/count_nodes.h"

#include <limits>

#include "support/poll.h"
#include "support/text.h"

namespace tenon::onnx {

namespace {

void add(int64_t* to, int64_t n) {
  if (__builtin_add_overflow(*to, n, to)) *to = std::numeric_limits<int64_t>::max();
}

class Counter {
 public:
  explicit Counter(const Model& model) {
    for (const ModelFunction& f : model.functions) {
      functions_.emplace(function_key(f.domain, f.name, f.overload), &f);
    }
  }

  NodeCount of(const std::vector<Node>& nodes, int depth) {
    NodeCount out;
    for (const Node& n : nodes) {
      poll();
      add(&out.nodes, 1);
      auto function = functions_.find(function_key(n.domain, n.op, n.overload));
      if (function != functions_.end()) {
        if (depth < kMaxFunctionDepth) join(&out, of(*function->second, depth + 1));
        continue;
      }
      add(&out.operators[op_text(n)], 1);
      for (const Attribute& a : n.attributes) {
        if (a.graph != nullptr) join(&out, of(a.graph->nodes, depth));
      }
    }
    return out;
  }

 private:
  // Cached, because functions that call each other twice would be walked 2^depth times.
  const NodeCount& of(const ModelFunction& f, int depth) {
    auto [found, fresh] = counted_.try_emplace(&f);
    if (fresh) found->second = of(f.nodes, depth);
    return found->second;
  }

  static void join(NodeCount* to, const NodeCount& from) {
    add(&to->nodes, from.nodes);
    for (const auto& [op, n] : from.operators) add(&to->operators[op], n);
  }

  std::map<std::string, const ModelFunction*> functions_;
  std::map<const ModelFunction*, NodeCount> counted_;
};

}  // namespace

NodeCount count_nodes(const Model& model) {
  return Counter(model).of(model.graph.nodes, 0);
}

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
  return cat(domain, "\n", name, "\n", overload);
}

std::string op_text(const Node& n) {
  return n.domain.empty() ? n.op : cat(n.domain, ":", n.op);
}

}  // namespace tenon::onnx
