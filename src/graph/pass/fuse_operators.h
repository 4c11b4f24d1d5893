// fuse_operators: groups calls of operators into primitive functions, each of which becomes one
// kernel.
//
// A group has one result: its last call, the root. A producer joins the group of its consumers if
// all its uses are in that group and
//   - it is elementwise, broadcast or movement, and fusing it doesn't repeat costly work, or
//   - it is a reduction, normalisation or contraction, the group has none yet, and all calls
//     between it and the root are elementwise or broadcast and have its shape.
// Groups grow backwards from the root, so no path leaves a group and returns to it, and fusion
// makes no cycles. After the pass, every call of an operator with a lowering is in a primitive
// function.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fuse_operators(const Module& module, PassContext& cx);

// A name for a group's function, or for its kernel: its operators and digits of a hash of its
// content, so that it depends on nothing else in the module.
std::string fused_name(const FunctionExpr& group);
// The operators in such a name, such as "relu_max_pool" (the first of them, where they are many);
// another name as it is.
std::string fused_operators(std::string_view name);

}  // namespace tenon::graph
