// materialize_values: builds an integer tensor whose type carries its elements from these
// expressions (memory.values), so that the shape arithmetic that computed it becomes dead.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module materialize_values(const Module& module, PassContext& cx);

}  // namespace tenon::graph
