// Operators of other domains that the host binds to functions of the registry
// (docs/custom-operators.md): "com.acme:Scale" computes the nodes of Scale in the domain com.acme,
// and "com.acme:Scale.signature" returns their types.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

// Whether a registered function computes the node.
bool is_custom(const Node& node);

// Translates such a node to a call of its function, with a check of each operand's and result's
// type.
Operands translate_custom(NodeContext& cx);

}  // namespace tenon::onnx
