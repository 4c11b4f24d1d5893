// materialize_values: an integer tensor whose elements its type carries as expressions is made from
// them (memory.values), so that what computed it goes. Shape arithmetic ends here.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module materialize_values(const Module& module, PassContext& cx);

}  // namespace tenon::graph
