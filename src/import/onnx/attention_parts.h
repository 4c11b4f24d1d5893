// Parts of attention, for ONNX's operators and ONNX Runtime's. Unless stated otherwise, tensors are
// [batch, heads, seq, size].
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

// The type in which scores and rotations are computed: f32 for narrower floats.
DataType wide_type(DataType dtype);

// x with these sizes, which are checked at run time where its type doesn't prove them.
Operand with_sizes(NodeContext& cx, const Operand& x, const Dims& sizes);

// [batch, seq, heads * size] as [batch, heads, seq, size], and back.
Operand split_heads(NodeContext& cx, const Operand& x, int64_t heads);
Operand merge_heads(NodeContext& cx, const Operand& x);

// What attention begins with.
struct Projections {
  Operand q, k, v;
};

// Repeats each head `times` times, with copies next to each other.
Operand repeat_heads(NodeContext& cx, const Operand& x, int64_t times);

// 0 .. count - 1, i64, along one axis of `rank`.
Operand places(NodeContext& cx, const Dim& count, size_t axis, size_t rank);

// Rotates the first `rotated` elements of each head as pairs, which are neighbours if interleaved,
// and otherwise half of `rotated` apart. cosine and sine are [batch, 1, seq, rotated / 2].
Operand rotate(NodeContext& cx, const Operand& x, const Operand& cosine, const Operand& sine,
               int64_t rotated, bool interleaved);

// scale * q k^T, [batch, heads, queries, keys], where k may have fewer heads, each of which serves
// as many consecutive heads of q; scale 0 stands for 1 / sqrt(size).
Operand attention_scores(NodeContext& cx, const Operand& q, const Operand& k, double scale);

// weights * v, where v may have fewer heads as above.
Operand weighted_values(NodeContext& cx, const Operand& weights, const Operand& v);

}  // namespace tenon::onnx
