// simplify: removes work that is not needed.
//
//   - expands composite operators (ExpandFn)
//   - replaces an integer tensor whose type carries only numbers, or would if it were inferred
//     now, by a constant
//   - drops checks and matches that are proved, and takes fields of known tuples
//   - applies the rules of simplify_rules.cc
//   - merges equal calls without side effects (common subexpressions)
//   - drops unused bindings, including any errors that they would raise
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module simplify(const Module& module, PassContext& cx);

}  // namespace tenon::graph
