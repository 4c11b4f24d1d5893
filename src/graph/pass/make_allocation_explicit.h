// make_allocation_explicit: destinations become values. A kernel call by value becomes a storage
// and a tensor for each result and a call that writes them; a reshape becomes a view. A result that
// its kernel may write in place takes over an operand that the block made, that nothing else holds,
// and whose last use the call is.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module make_allocation_explicit(const Module& module, PassContext& cx);

// Bytes of a tensor of that type; its dimensions are known.
Dim bytes_of(const TensorType& type);

}  // namespace tenon::graph
