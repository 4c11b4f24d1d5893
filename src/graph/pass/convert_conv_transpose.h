// convert_conv_transpose: computes transposed convolutions of floats by convolutions, which have
// fast kernels. Along one spatial axis, with stride s and kernel size k,
//
//   y[o] = sum over j of x[(o + pad - j) / s] w[j],   for all j that divide and stay in x
//
// With o + pad = t s + r and j = q s + r, this is for each phase r < s an ordinary convolution:
//
//   y[t s + r - pad] = sum over q of x[t - q] w[q s + r]
//
// Phases with as many q are filters of one convolution, whose channels then spread over the places
// (a pixel shuffle). If s doesn't divide k, there are two such classes along an axis, so that no
// zeros are added to the weights: infinity times them would be NaN. A class without q, where k < s,
// is the bias alone. Convolutions of each channel for itself have a class for each phase. The
// multiplications are those of the definition, and those with padding.
//
// An axis with stride 1 is one phase, and may have a dilation. Axes with both stay as they are, and
// so do symbolic kernel sizes and pads.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module convert_conv_transpose(const Module& module, PassContext& cx);

}  // namespace tenon::graph
