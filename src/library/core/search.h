// Searching and sorting: the functions behind nonzero, topk, compress and unique.
#pragma once

#include "object/array.h"
#include "object/tensor.h"

namespace tenon::core {

// i64[rank, count] (rank 1 for a scalar): the index of each element that is not 0, a column each,
// in row-major order.
Tensor nonzero(const Tensor& x);

// [values, indices (i64)] of the k greatest or least elements along an axis, in order; of equal
// ones the first. NaN is the greatest. Without `sorted` any order is allowed, and this one is
// taken.
Array<Any> topk(const Tensor& x, int64_t k, int64_t axis, int64_t largest, int64_t sorted);

// The slices along `axis` (elements of the flat tensor, if `flatten`) whose entry of `condition`, a
// list of booleans that may be shorter, is true.
Tensor compress(const Tensor& x, const Tensor& condition, int64_t axis, int64_t flatten);

// [values, first, inverse, counts] of the distinct slices along `axis` (elements, if `flatten`), in
// rising or, without `sorted`, first-seen order. NaNs are equal to each other.
Array<Any> unique(const Tensor& x, int64_t axis, int64_t flatten, int64_t sorted);

}  // namespace tenon::core
