// fold_constants: computes bindings that depend only on constants, by the operators' own lowerings.
//
// Such bindings are outlined into one function without parameters, which is fused and lowered like
// any other and run by the Evaluator; its results become constants. Bindings are taken in order
// until the values that are stored in memory reach the module's fold limit, or all values,
// including those that fuse into their uses, sixteen times that limit. A binding whose computation
// fails stays in the program: an index may be out of range in code that never runs, or the work may
// exceed the Evaluator's limit.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fold_constants(const Module& module, PassContext& cx);

}  // namespace tenon::graph
