// Index arithmetic for lowerings. Loads must be in range by construction. A kernel can't rely on
// relations between sizes that inference left to a `check` binding, because its caller may be
// hostile, so these functions check them again. The checks don't depend on the element and are
// hoisted out of loops.
#pragma once

#include "graph/op/scalar.h"

namespace tenon::graph {

// `start`, checked such that start ... start + length - 1 lie in [0, extent); unchecked if that can
// be proved.
Scalar window(const Dim& start, const Dim& length, const Dim& extent);

// `i`, which runs over `space` elements, as an index into `extent` elements: checked unless space
// <= extent can be proved.
Scalar within(const Scalar& i, const Dim& space, const Dim& extent);
// Loads b[indices], where indices[k] runs over space[k].
Scalar load_within(const BufferRef& b, const Indices& indices, const std::vector<Dim>& space);

// 0 <= i < extent.
Scalar in_range(const Scalar& i, const Dim& extent);
// `i` clamped to 0 ... extent - 1.
Scalar clamp(const Scalar& i, const Dim& extent);

// Convert between indices into `dims` and row-major offsets.
Scalar flatten(const Indices& indices, const std::vector<Dim>& dims);
Indices unflatten(const Scalar& offset, const std::vector<Dim>& dims);

std::vector<Dim> dims_of(const BufferRef& b);
Scalar load(const BufferRef& b, const Indices& indices);

// The dtype in which to keep sums and compute functions: f32 for f16, else the dtype itself.
DataType wide(DataType dtype);

}  // namespace tenon::graph
