// fuse_operators: groups calls of operators into primitive functions, each of which becomes one
// kernel.
//
// A group has one result, its root, the last of its calls. A producer joins the group of its
// consumers when all its uses are in that group and
//   - it is elementwise, broadcast or movement, and would not be computed many times over, or
//   - it is a reduction, normalisation or contraction, the group has none yet, and every call
//   between
//     it and the root is elementwise or broadcast over its very shape.
// Growing backwards from the root with that rule never makes a cycle: no path leaves a group and
// comes back. After the pass every call of an operator that has a lowering stands in a primitive
// function.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fuse_operators(const Module& module, PassContext& cx);

// The name of a group's function: its operators, and digits of a hash of what it computes. So it is
// the same wherever the group stands, whatever else the module holds.
std::string fused_name(const FunctionExpr& group);

}  // namespace tenon::graph
