// Translates one node to graph IR, by its row of the operator table.
#pragma once

#include <string>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

// The result of translating a node.
struct Translation {
  Operands results;  // empty if the node can't be imported
  // Why it can't, or empty if the reason lies in an inner graph and has been listed.
  std::string problem;
};

// Throws Error (Usage) with the node's span for a node that breaks ONNX's rules.
Translation translate_node(const Model& model, const Node& node, Translate translate,
                           Operands operands, int64_t opset, graph::Builder& builder,
                           InnerGraph inner_graph);

}  // namespace tenon::onnx
