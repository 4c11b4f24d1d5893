// Index arithmetic of lowerings. Loads must be in range by construction: where inference left a
// relation of sizes to a `check` binding, the kernel can't rely on it (its caller may be hostile),
// so these functions add a check of their own. It does not depend on the element, so that it costs
// nothing in a loop.
#pragma once

#include "graph/op/scalar.h"

namespace tenon::graph {

// The number `start`, such that start ... start + length - 1 lie in [0, extent): a plain number
// where that is proved, else one that the kernel checks when it uses it.
Scalar window(const Dim& start, const Dim& length, const Dim& extent);

// An index into `extent` elements made of `i`, which runs over `space` elements: `i` itself where
// space <= extent is proved, else checked.
Scalar within(const Scalar& i, const Dim& space, const Dim& extent);
// Loads b[indices], each index running over the same dimension of `space`.
Scalar load_within(const BufferRef& b, const Indices& indices, const std::vector<Dim>& space);

// 0 <= i < extent.
Scalar in_range(const Scalar& i, const Dim& extent);
// `i` moved to the nearest of 0 ... extent - 1.
Scalar clamp(const Scalar& i, const Dim& extent);

// The row-major offset of `indices` in `dims`, and back.
Scalar flatten(const Indices& indices, const std::vector<Dim>& dims);
Indices unflatten(const Scalar& offset, const std::vector<Dim>& dims);

std::vector<Dim> dims_of(const BufferRef& b);
Scalar load(const BufferRef& b, const Indices& indices);

// f32 for f16, else the dtype itself: in which sums are kept and functions computed.
DataType wide(DataType dtype);

}  // namespace tenon::graph
