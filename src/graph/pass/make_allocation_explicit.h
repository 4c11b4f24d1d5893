// make_allocation_explicit: destinations become values. A kernel call by value becomes a storage
// and a tensor for each result and a call that writes them; a reshape becomes a view; integer
// tensors whose elements their types carry are made from those.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module make_allocation_explicit(const Module& module, PassContext& cx);

// Bytes of a tensor of that type; its dimensions are known.
Dim bytes_of(const TensorType& type);

}  // namespace tenon::graph
