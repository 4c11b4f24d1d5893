// Excess precision inside a kernel: f16 and bf16 are computed in f32, and what stays in the kernel
// needn't be rounded to them in between.
#pragma once

#include "loop/compute.h"

namespace tenon::loop {

// Leaves out roundings to f16 and bf16 between operations: an arithmetic operation takes the f32
// result of another one, or of a conversion, as it is, and buffers that only the kernel sees hold
// f32. Rounded as before is what is stored in an output, compared, converted to anything but a
// wider float, or computed for an element of rank 0, which may be a scalar. A conversion to a
// narrow float and back rounds, since that is all it does.
ComputeRef with_excess_precision(const ComputeRef& compute);

}  // namespace tenon::loop
