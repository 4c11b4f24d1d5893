// Shared by products of integers of 8 bits, less their zero points.
#pragma once

#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {

// Fails unless operand `zero`, which may be absent, has the dtype of `operand` and broadcasts to
// it.
void require_zero_point(InferContext& cx, size_t operand, size_t zero);
// Element `at` of `operand` less its zero point, as i32.
Scalar centred(const LowerContext& cx, size_t operand, size_t zero, const Indices& at);
// The same for an element `x` that has been loaded, and a zero point of one element.
Scalar centred(const LowerContext& cx, const Scalar& x, size_t zero);

Scalar only_element(const BufferRef& b);

// A zero point for an operand of this shape: absent, one number, or one per index of an axis.
TypeRef sample_zero_point(Random& random, DataType dtype, const std::vector<int64_t>& shape);

}  // namespace tenon::graph
