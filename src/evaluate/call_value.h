// Calls that end at once, with no block to run: of kernels, packed functions and operators.
#pragma once

#include "evaluate/activation.h"

namespace tenon::graph {

// The value of `binding`, which calls `call`: by `kernel` where it has one. Throws what the callee
// raises, and Unsupported for a closure's call.
Any call_value(const Binding& binding, const Call& call, const PreparedKernel* kernel,
               const Activation& activation);

}  // namespace tenon::graph
