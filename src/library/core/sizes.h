// Sizes that depend on data, for reshape, slice and range.
#pragma once

#include "object/array.h"
#include "object/tensor.h"

namespace tenon::core {

// `shape` (i64[n]) with a -1 replaced by the size that the elements of x require, and, unless
// `allowzero`, each 0 by the size of x at that index.
Tensor reshape_sizes(const Tensor& shape, const Tensor& x_shape, int64_t allowzero);

// [starts, sizes, steps], i64[rank] each, of ONNX's Slice. Starts and ends are clamped to x, and
// negative ones count from the end. `axes` may be null (the first axes), and so may `steps` (all
// 1). An empty slice starts at 0. The step of a slice of one element is 1.
Array<Any> slice_bounds(const Tensor& x_shape, const Tensor& starts, const Tensor& ends,
                        const Tensor& axes, const Tensor& steps);

// max(0, ceil((limit - start) / delta)), i64 of rank 0; the operands have one element and one
// dtype.
Tensor range_count(const Tensor& start, const Tensor& limit, const Tensor& delta);

}  // namespace tenon::core
