// plan_memory: lets values of a function whose lifetimes don't overlap share storage.
//
// Tensors of constant size get offsets in an arena of the function, for its loops and branches,
// too, but those of blocks that need much more than the rest in arenas of their own
// (plan_arenas.h). A tensor of symbolic size reuses a storage whose value is dead and whose size
// provably covers it (share_storages.h). A value that may escape keeps a storage of its own: a
// result, what a loop hands to its next turn, what a cell or closure keeps, operands of calls.
// Using a view uses its source. The memory of each device is planned separately.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module plan_memory(const Module& module, PassContext& cx);

}  // namespace tenon::graph
