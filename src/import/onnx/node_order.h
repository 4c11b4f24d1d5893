// The order in which a graph's nodes can be run. ONNX asks for a topological one, but models in
// which nodes stand otherwise are about, and other importers sort them.
#pragma once

#include <vector>

#include "import/onnx/model.h"

namespace tenon::onnx {

// Indices of `nodes` so that each comes after those that make its operands, inner graphs' included;
// as listed where that is such an order, else the least change. Of Constant nodes that define one
// name only the last is in it, as if they were initializers. Throws Usage for a cycle.
std::vector<size_t> node_order(const std::vector<Node>& nodes, const std::string& file);

}  // namespace tenon::onnx
