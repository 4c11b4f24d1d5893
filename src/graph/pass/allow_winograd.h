// allow_winograd: says which convolutions Winograd's algorithm may compute: those of f32 with
// windows of 3 by 3, stride 1 and channels last. Kernels and libraries then use it where it is
// faster.
//
// A convolution of what dequantize_linear gives isn't among them: its sums of few integers are
// exact if they are computed directly, and what follows quantises them again, where the algorithm's
// rounding errors would become whole steps. With the option direct_convolutions, none is.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module allow_winograd(const Module& module, PassContext& cx);

}  // namespace tenon::graph
