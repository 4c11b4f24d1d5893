// Copies of bodies, for passes that put a function's body where it is called.
#pragma once

#include "graph/ir/expr.h"

namespace tenon::graph {

// The function's body with `args` for its parameters, and other sizes and types for the symbols and
// type parameters that it mentions. Every variable is new. The function has no literals.
BlockRef renamed_body(const FunctionExpr& function, const std::vector<Operand>& args,
                      const DimSubstitution& sizes, const Map<String, TypeRef>& types);

}  // namespace tenon::graph
