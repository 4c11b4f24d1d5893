// plan_memory: lets values of a block whose lifetimes don't overlap share storage.
//
// Tensors of constant size get offsets in one storage per block (first fit, largest first), which
// is allocated where the block first needs it. A tensor of symbolic size reuses a storage whose
// value is dead and whose size provably covers it. A value that may escape keeps a storage of its
// own: the block's result, fields of tuples, and operands of anything except kernels, views,
// match_shape and, outside nested blocks, packed functions that retain nothing. Using a view uses
// its source. The memory of each device is planned separately.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module plan_memory(const Module& module, PassContext& cx);

}  // namespace tenon::graph
