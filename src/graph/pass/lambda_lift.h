// lambda_lift: makes functions of function literals. Their captures, variables and sizes, become
// the first parameters, and the literal becomes a closure of the function. See Johnsson, "Lambda
// Lifting: Transforming Programs to Recursive Equations" (1985).
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

// Afterwards no function has a literal.
Module lambda_lift(const Module& module, PassContext& context);

}  // namespace tenon::graph
