// The rewrite rules of simplify, as a table from an operator's name to functions that try to
// replace one call of it. A rule never assumes that a value is not NaN, infinite or -0.
#pragma once

#include "graph/ir/builder.h"

namespace tenon::graph {

// The replacement of `call`, whose result has `type`, by the first rule that applies, or null.
Operand apply_simplify_rules(Builder& b, const Call& call, const TypeRef& type);

}  // namespace tenon::graph
