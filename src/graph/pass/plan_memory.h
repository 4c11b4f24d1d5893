// plan_memory: lets values of a function whose lifetimes don't overlap share storage.
//
// Tensors of constant size get offsets in one arena per function, for its loops and branches, too.
// A tensor of symbolic size reuses a storage whose value is dead and whose size provably covers it.
// A value that may escape keeps a storage of its own: a result, what a loop hands to its next turn,
// what a cell or closure keeps, operands of calls. Using a view uses its source. The memory of each
// device is planned separately.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module plan_memory(const Module& module, PassContext& cx);

}  // namespace tenon::graph
