// plan_memory: values of a block that are never alive together share storage.
//
// Tensors of constant size get offsets in one storage per block (first fit, largest first),
// allocated where the block first needs it; tensors of symbolic size take over a storage whose
// value is dead and whose size provably covers theirs. A value that may leave the block (its
// result, a field of a tuple, the operand of anything but a kernel, a packed function that retains
// nothing, a view or a match_shape; in a nested block, of anything but a kernel, a view or a
// match_shape) keeps a storage of its own. Views count as uses of what they view.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module plan_memory(const Module& module, PassContext& cx);

// Throws Error (Internal) when two live values of `module` overlap: the plan's verifier, which
// works from the finished module alone.
void verify_memory_plan(const Module& module);

}  // namespace tenon::graph
