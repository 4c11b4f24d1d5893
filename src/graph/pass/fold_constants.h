// fold_constants: what depends on constants alone is computed now, by the operators' own lowerings.
//
// What reads only constants is taken out as one function without parameters, fused and lowered like
// any other, and run by the Evaluator; its results become constants. Bindings are taken in order
// until the values that stand in memory reach the fold limit of the module, or those that fuse into
// what uses them sixteen times that. What fails to compute stays, and fails where it runs: an index
// out of range in code that may never run, or more work than the Evaluator is to do.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fold_constants(const Module& module, PassContext& cx);

}  // namespace tenon::graph
