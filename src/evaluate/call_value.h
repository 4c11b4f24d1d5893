// Calls that end at once, with no block to run: of kernels, packed functions and operators.
#pragma once

#include "evaluate/activation.h"

namespace tenon::graph {

// The value of `binding`, which calls `call`: by `kernel` where it has one. Throws what the callee
// raises, and Unsupported for a closure's call. What a kernel stores, as it is estimated, is taken
// off `stores_left` beforehand (ReferenceEvaluator).
Any call_value(const Binding& binding, const Call& call, const PreparedKernel* kernel,
               const Activation& activation, double* stores_left);

}  // namespace tenon::graph
