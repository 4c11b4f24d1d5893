// The order in which a graph's nodes can be run. ONNX requires nodes to be sorted topologically,
// but there are models whose nodes are not, and other importers sort them.
#pragma once

#include <vector>

#include "import/onnx/model.h"

namespace tenon::onnx {

// The indices of `nodes` in a topological order, which considers the operands of inner graphs. It
// is the given order if that is topological, else changes it as little as possible. Of several
// Constant nodes that define one name, only the last is included, as for initializers. Throws Usage
// for a cycle.
std::vector<size_t> node_order(const std::vector<Node>& nodes, const std::string& file);

}  // namespace tenon::onnx
