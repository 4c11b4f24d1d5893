// Sizes that depend on data: what reshape, slice and range need to know before they can run.
#pragma once

#include "object/array.h"
#include "object/tensor.h"

namespace tenon::core {

// `shape` (i64[n]) with one -1 resolved to what is left of the elements of `x_shape`, and each 0 to
// the size of x at its place unless `allowzero`.
Tensor reshape_sizes(const Tensor& shape, const Tensor& x_shape, int64_t allowzero);

// [starts, sizes, steps], i64[rank] each, of ONNX's Slice: starts and ends are clamped to x,
// negative ones count from the end; `axes` (null: the first ones) and `steps` (null: 1) go with
// them. An empty slice starts at 0. The step of a slice of one element is 1.
Array<Any> slice_bounds(const Tensor& x_shape, const Tensor& starts, const Tensor& ends,
                        const Tensor& axes, const Tensor& steps);

// max(0, ceil((limit - start) / delta)), i64 of rank 0; the operands have one element and one
// dtype.
Tensor range_count(const Tensor& start, const Tensor& limit, const Tensor& delta);

}  // namespace tenon::core
