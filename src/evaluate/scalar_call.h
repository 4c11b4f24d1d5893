// Operators on scalars: bools, i64, f32 and f64 outside of tensors.
#pragma once

#include "evaluate/activation.h"

namespace tenon::graph {

// Whether a condition holds: a boolean, or a boolean tensor of one element. A Runtime error for any
// other tensor.
bool truth(const Any& condition);

// The value of an operator's call on scalars. Errors: Runtime for a zero divisor.
Any scalar_call(const Call& call, const Activation& activation);

}  // namespace tenon::graph
