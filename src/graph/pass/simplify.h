// simplify: removes what need not be computed.
//
//   - operators that expand into others (ExpandFn) are expanded
//   - an integer tensor whose type carries all its elements is a constant, or made from its sizes
//   - calls on constants are folded by the Evaluator, up to the fold limit
//   - equal pure bindings are one (common subexpressions)
//   - bindings whose result nothing uses go, with the errors they could have raised
//   - identities: see the rules in simplify_rules.cc
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module simplify(const Module& module, PassContext& cx);

// Only the last: bindings that nothing uses.
Module remove_dead_code(const Module& module, PassContext& cx);

}  // namespace tenon::graph
