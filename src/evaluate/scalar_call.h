// Operators on scalars: what bytecode computes in registers.
#pragma once

#include "evaluate/activation.h"

namespace tenon::graph {

// Whether a condition holds: a boolean, or a boolean tensor of one element. A Runtime error for any
// other tensor.
bool truth(const Any& condition);

// The value of an operator's call whose result is a scalar of `dtype`. Errors: Runtime for a zero
// divisor, Unsupported for floating scalars.
Any scalar_call(const Call& call, DataType dtype, const Activation& activation);

}  // namespace tenon::graph
