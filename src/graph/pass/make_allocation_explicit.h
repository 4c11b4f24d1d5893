// make_allocation_explicit: makes destinations explicit. A kernel call becomes a storage and a
// tensor per result and a call that writes them; a reshape becomes a view. A result that its kernel
// may write in place reuses the memory of an operand if the block created that operand, nothing
// else references it, and the call is its last use.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module make_allocation_explicit(const Module& module, PassContext& cx);

}  // namespace tenon::graph
