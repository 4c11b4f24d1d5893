// Winograd's algorithm for convolutions of 3 by 3 with stride 1: F(4x4, 3x3), which multiplies a
// quarter as often as the definition, and F(2x2, 3x3), 4/9 as often.
//
// Each tile of outputs and its window are transformed to `points`, where the convolution is one
// matrix product [tiles, channels] x [channels, filters] per point. docs/semantics.md has the
// errors.
#pragma once

#include "library/onednn/convolution.h"
#include "library/onednn/winograd_kernels.h"

namespace tenon::onednn {

// Whether run_winograd can compute it: 3 by 3, stride 1, one group, constant weights, channels and
// filters that fill vectors, and no activation but Relu and Clip.
bool fits_winograd(const Convolution& convolution);

// The kernels that are faster than a direct convolution, or null. Depends on the shapes alone, so
// that results don't depend on the number of threads.
const WinogradKernels* choose_winograd(const Convolution& convolution);

// Computes a convolution that fits. Returns false if a sum overflowed or wasn't a number: an
// infinity or NaN spreads over its tile, so the caller has to compute the convolution directly.
// `out` is then unspecified.
bool run_winograd(const Convolution& convolution, const WinogradKernels& kernels);

}  // namespace tenon::onednn
