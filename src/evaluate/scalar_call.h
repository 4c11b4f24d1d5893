// Operators on scalars: numbers and booleans outside tensors.
#pragma once

#include "evaluate/activation.h"

namespace tenon::graph {

// The scalar whose value loop/scalar.h holds as these bits.
Any scalar_of(DataType dtype, int64_t bits);

// The value of a condition: a boolean, or a boolean tensor of one element. Throws Runtime for any
// other tensor.
bool truth(const Any& condition);

// The value of a call of an operator on scalars. Throws Runtime for a zero divisor.
Any scalar_call(const Call& call, const Activation& activation);

}  // namespace tenon::graph
