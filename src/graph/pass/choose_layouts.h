// choose_layouts: convolutions and poolings of images run channels-last: transposes are put around
// them, and moved, cancelled and folded by the rules of simplify.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module choose_layouts(const Module& module, PassContext& cx);

}  // namespace tenon::graph
