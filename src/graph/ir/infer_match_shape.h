// What match_shape and match_elements bindings know and state of sizes.
#pragma once

#include <optional>

#include "graph/ir/expr.h"

namespace tenon::graph {

// The type of the value that `e` matches, with the dimensions or elements that `e` states. Throws
// Usage without a span if the value can't have them for any values of its unknown sizes.
TypeRef infer_match_shape(const MatchShape& e);

// What the type of the value that `e` matches says about the sizes that `e` states.
std::optional<Array<Dim>> known_sizes(const MatchShape& e);
// False if sizes that are known certainly differ from stated ones, also in their number.
bool may_match(const Array<Dim>& known, const Array<Dim>& stated);
// Whether `e` would certainly fail with this value. A pass then doesn't give it the value: it is to
// fail only when it runs.
bool refuses(const MatchShape& e, const Operand& value);

}  // namespace tenon::graph
