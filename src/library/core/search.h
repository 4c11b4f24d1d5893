// Searching and sorting: the functions behind nonzero, topk, compress and unique.
#pragma once

#include "object/array.h"
#include "object/tensor.h"

namespace tenon::core {

// i64[rank, count] (rank 1 for a scalar): the indices of nonzero elements in row-major order, one
// column per element.
Tensor nonzero(const Tensor& x);

// [values, indices (i64)] of the k greatest or least elements along an axis, in order; the first of
// equal ones. NaN is the greatest. `sorted` has no effect: the results are always sorted.
Array<Any> topk(const Tensor& x, int64_t k, int64_t axis, int64_t largest, int64_t sorted);

// The slices along `axis` (elements of the flattened tensor if `flatten`) whose entry in
// `condition` is true. `condition` is a list of booleans, which may be shorter than the axis.
Tensor compress(const Tensor& x, const Tensor& condition, int64_t axis, int64_t flatten);

// [values, first, inverse, counts] of the distinct slices along `axis` (elements if `flatten`), in
// increasing order or, without `sorted`, in order of appearance. NaNs are equal to each other.
Array<Any> unique(const Tensor& x, int64_t axis, int64_t flatten, int64_t sorted);

}  // namespace tenon::core
