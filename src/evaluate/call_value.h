// Calls that run no block: of kernels, packed functions and operators.
#pragma once

#include "evaluate/activation.h"

namespace tenon::graph {

// The value of `binding`, whose right-hand side is `call`; `kernel` is its kernel or null. Throws
// what the callee throws. A packed function gets its arguments when the activation has dropped the
// variables of which this is the last use. Before a kernel runs, its estimated work is subtracted
// from `work_left` (see EvaluatorState).
Any call_value(const Binding& binding, const Call& call, const PreparedKernel* kernel,
               std::span<const Var* const> last_uses, Activation& activation, double* work_left);

}  // namespace tenon::graph
