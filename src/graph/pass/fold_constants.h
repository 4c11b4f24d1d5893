// fold_constants: what depends on constants alone is computed now, by the operators' own lowerings.
//
// The largest parts of a function that read only constants are taken out as one function without
// parameters, fused and lowered like any other, and run by the Evaluator; their results become
// constants. A part whose results would pass the fold limit stays. What fails to compute (an index
// out of range in code that may never run) stays too, and fails where it runs.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fold_constants(const Module& module, PassContext& cx);

}  // namespace tenon::graph
