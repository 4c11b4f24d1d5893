// allow_winograd: says of each convolution whether Winograd's algorithm may compute it: of 3 by 3
// with stride 1, channels-last, of f32. Kernels and libraries then use it where it is faster.
//
// Not of the result of a dequantize_linear: sums of few integers are exact if they are computed
// directly, and what follows quantises them again, where the algorithm's rounding errors would
// become whole steps. Of none with the option direct_convolutions.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module allow_winograd(const Module& module, PassContext& cx);

}  // namespace tenon::graph
