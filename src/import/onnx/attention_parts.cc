#include "import/onnx/attention_parts.h"

#include <cmath>

namespace tenon::onnx {

using graph::attrs;

DataType wide_type(DataType dtype) {
  return dtype.is_narrow_float() ? f32 : dtype;
}

Operand with_sizes(NodeContext& cx, const Operand& x, const Dims& sizes) {
  return cx.dims(x) == sizes ? x : cx.b.match_shape(x, sizes);
}

Operand split_heads(NodeContext& cx, const Operand& x, int64_t heads) {
  if (heads <= 0) cx.invalid(cat(heads, " heads for an operand of rank 3"), "1 or more");
  Dims d = cx.dims(x);
  return cx.transpose(cx.reshape(x, {d[0], d[1], heads, divide({d[2]}, {heads})}), {0, 2, 1, 3});
}

Operand merge_heads(NodeContext& cx, const Operand& x) {
  Operand y = cx.transpose(x, {0, 2, 1, 3});
  Dims d = cx.dims(y);
  return cx.reshape(y, {d[0], d[1], d[2] * d[3]});
}

Operand repeat_heads(NodeContext& cx, const Operand& x, int64_t times) {
  if (times == 1) return x;
  Dims d = cx.dims(x);
  Operand wide =
      cx.expand(cx.reshape(x, {d[0], d[1], 1, d[2], d[3]}), {d[0], d[1], times, d[2], d[3]});
  return cx.reshape(wide, {d[0], d[1] * times, d[2], d[3]});
}

Operand places(NodeContext& cx, const Dim& count, size_t axis, size_t rank) {
  Operand i = cx.op("range", {cx.integer(0), cx.integer(1)}, attrs({{"count", count}}));
  Dims shape(rank, Dim(1));
  shape[axis] = count;
  return cx.reshape(i, shape);
}

Operand rotate(NodeContext& cx, const Operand& x, const Operand& cosine, const Operand& sine,
               int64_t rotated, bool interleaved) {
  const Dims d = cx.dims(x);
  const int64_t half = rotated / 2;
  Operand turning = cx.slice(x, 3, 0, rotated), first, second;
  if (interleaved) {
    Operand pairs = cx.reshape(turning, {d[0], d[1], d[2], half, 2});
    first = cx.squeeze(cx.slice(pairs, 4, 0, 1), {4});
    second = cx.squeeze(cx.slice(pairs, 4, 1, 1), {4});
  } else {
    first = cx.slice(turning, 3, 0, half);
    second = cx.slice(turning, 3, half, half);
  }
  Operand real = cx.sub(cx.mul(cosine, first), cx.mul(sine, second));
  Operand imaginary = cx.add(cx.mul(sine, first), cx.mul(cosine, second));
  if (interleaved) {
    Operand pairs = cx.concat({cx.unsqueeze(real, {4}), cx.unsqueeze(imaginary, {4})}, 4);
    turning = cx.reshape(pairs, {d[0], d[1], d[2], rotated});
  } else {
    turning = cx.concat({real, imaginary}, 3);
  }
  if (d[3].is_const(rotated)) return turning;
  return cx.concat({turning, cx.slice(x, 3, rotated, d[3] - rotated)}, 3);
}

namespace {

// The heads that share a head of `groups` as further rows: [batch, groups, rows, size].
Operand by_group(NodeContext& cx, const Operand& x, const Dim& groups) {
  const Dims d = cx.dims(x);
  return cx.reshape(x, {d[0], groups, divide({d[1]}, {groups}) * d[2], d[3]});
}

}  // namespace

Operand attention_scores(NodeContext& cx, const Operand& q, const Operand& k, double scale) {
  const Dims queries = cx.dims(q), keys = cx.dims(k);
  const DataType dtype = cx.dtype(q);
  Operand factor;
  if (scale != 0) {
    factor = cx.scalar(dtype, scale);
  } else if (auto n = queries.at(3).as_const()) {
    factor = cx.scalar(dtype, 1 / std::sqrt(static_cast<double>(*n)));
  } else {
    factor = cx.cast(cx.op("rsqrt", {cx.cast(cx.dim_scalar(queries[3]), f32)}), dtype);
  }
  Operand rows = by_group(cx, cx.mul(q, factor), keys.at(1));
  Operand scores = cx.op("matmul", {rows, cx.transpose(k, {0, 1, 3, 2})});
  return cx.reshape(scores, {queries[0], queries[1], queries[2], keys[2]});
}

Operand weighted_values(NodeContext& cx, const Operand& weights, const Operand& v) {
  const Dims d = cx.dims(weights), values = cx.dims(v);
  Operand y = cx.op("matmul", {by_group(cx, weights, values.at(1)), v});
  return cx.reshape(y, {d[0], d[1], d[2], values[3]});
}

}  // namespace tenon::onnx
