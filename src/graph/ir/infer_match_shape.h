// The type of a match_shape or match_elements binding.
#pragma once

#include "graph/ir/expr.h"

namespace tenon::graph {

// The type of the value that `e` matches, with the dimensions or elements that `e` states. Throws
// Error (Usage) without a span where the value can't have them, whatever its unknown sizes are.
TypeRef infer_match_shape(const MatchShape& e);

}  // namespace tenon::graph
