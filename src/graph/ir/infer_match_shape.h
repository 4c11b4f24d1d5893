// The type of a match_shape or match_elements binding.
#pragma once

#include "graph/ir/expr.h"

namespace tenon::graph {

// The type of the value that `e` matches, with the dimensions or elements that `e` states. Throws
// Usage without a span if the value can't have them for any values of its unknown sizes.
TypeRef infer_match_shape(const MatchShape& e);

}  // namespace tenon::graph
