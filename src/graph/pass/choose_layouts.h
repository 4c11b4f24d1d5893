// choose_layouts: makes convolutions of 1 to 3 spatial axes channels-last, and poolings of what is
// transposed already. It puts transposes around them and moves these through other operators;
// simplify's rules cancel and fold them.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module choose_layouts(const Module& module, PassContext& cx);

}  // namespace tenon::graph
