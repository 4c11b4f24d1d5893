// Normalisations of com.microsoft, fused with what comes before them: a residual, an embedding.
// docs: ContribOperators.md of ONNX Runtime.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// Casts operands of narrow floats to f32, so that a sum and what is computed of it round once at
// the end, and returns the type that results have.
DataType widen_inputs(NodeContext& cx) {
  const DataType dtype = cx.dtype(0);
  if (dtype.is_narrow_float()) cx.cast_inputs(dtype, f32);
  return dtype;
}

// x + skip (+ bias); the skip may lack the batch, or have it as 1.
Operand skip_sum(NodeContext& cx, size_t bias) {
  const Operand sum = cx.add(cx.in(0), cx.in(1));
  return cx.has(bias) ? cx.add(sum, cx.in(bias)) : sum;
}

// input, skip, gamma, beta, bias -> output, mean, 1 / deviation, sum
Operands skip_layer_normalization(NodeContext& cx) {
  const DataType dtype = widen_inputs(cx);
  const Operand sum = skip_sum(cx, 4);
  const bool statistics = cx.wants(1) || cx.wants(2);
  Operands out = cx.b.ops("layer_norm", {sum, cx.in(2), cx.opt(3)},
                          attrs({{"axis", -1},
                                 {"epsilon", cx.attr_float("epsilon", 1e-12)},
                                 {"statistics", statistics}}));
  out[0] = cx.cast(out[0], dtype);
  out.resize(3);
  out.push_back(cx.cast(sum, dtype));
  return out;
}

// input, skip, gamma, bias -> output, mean (which RMS normalisation has none of), 1 / root, sum
Operands skip_rms_normalization(NodeContext& cx) {
  const DataType dtype = widen_inputs(cx);
  const Operand sum = skip_sum(cx, 3);
  const double epsilon = cx.attr_float("epsilon", 1e-12);
  const Operand y = cx.op("rms_norm", {sum, cx.in(2)}, attrs({{"axis", -1}, {"epsilon", epsilon}}));
  Operand inverse;
  if (cx.wants(2)) {
    const Operand square = cx.reduce("reduce_mean", cx.mul(sum, sum), {cx.rank(sum) - 1}, true);
    inverse = cx.op("rsqrt", {cx.add(square, cx.scalar_like(square, epsilon))});
  }
  return {cx.cast(y, dtype), {}, inverse, cx.cast(sum, dtype)};
}

// Of a quantised embedding, operands 2 to 6 are 8-bit numbers; their scales and zero points are
// operands too.
Operand real(NodeContext& cx, size_t i, const Operand& x) {
  auto single = [&](size_t parameter) { return cx.reshape(cx.in(parameter), {}); };
  return cx.op("dequantize_linear", {x, single(i + 6), single(i + 11)});
}

// input_ids, segment_ids, word_embedding, position_embedding, segment_embedding, gamma, beta, mask,
// position_ids -> output, the number of tokens that the mask keeps, sum of the embeddings
Operands embedding(NodeContext& cx, bool quantized) {
  const Dims ids = cx.dims(0);
  if (ids.size() != 2) cx.invalid(cat("input_ids of rank ", ids.size()), "2");
  if (cx.has(1) != cx.has(4))
    cx.invalid("one of segment_ids and segment_embedding", "both or neither");
  auto floats = [&](size_t i, const Operand& x) { return quantized ? real(cx, i, x) : x; };
  auto rows = [&](size_t table, const Operand& indices) {
    return floats(table, cx.op("gather", {cx.in(table), indices}, attrs({{"axis", 0}})));
  };
  const bool places = !quantized && cx.has(8);
  const Operand positions =
      places ? rows(3, cx.in(8)) : floats(3, cx.slice(cx.in(3), 0, 0, ids[1]));
  Operand sum = cx.add(rows(2, cx.in(0)), positions);
  if (cx.has(1)) sum = cx.add(sum, rows(4, cx.in(1)));
  const Operand y = cx.op("layer_norm", {sum, floats(5, cx.in(5)), floats(6, cx.in(6))},
                          attrs({{"axis", -1}, {"epsilon", cx.attr_float("epsilon", 1e-12)}}));
  Operand kept = cx.full(i32, 0, {ids[0]});
  if (cx.has(7)) {
    const Operand is_kept = cx.op("equal", {cx.in(7), cx.scalar_like(cx.in(7), 1)});
    kept = cx.reduce("reduce_sum", cx.cast(is_kept, i32), {1}, false);
  }
  return {y, kept, sum};
}

Operands embed_layer_normalization(NodeContext& cx) {
  cx.ignore("mask_index_type");  // whether the second result exists, which the node says, too
  const DataType dtype = cx.dtype(2);
  if (dtype.is_narrow_float()) cx.cast_inputs(dtype, f32);
  Operands out = embedding(cx, false);
  return {cx.cast(out[0], dtype), out[1], cx.cast(out[2], dtype)};
}

Operands quantized_embed_layer_normalization(NodeContext& cx) {
  Operands out = embedding(cx, true);
  out.pop_back();
  return out;
}

// x, of which channels are the second axis or the last, normalised by groups of channels.
Operand grouped(NodeContext& cx, const Operand& x, size_t gamma, size_t beta) {
  const bool last = cx.attr_bool("channels_last", true);
  const int64_t groups = cx.attr_int("groups"), activation = cx.attr_int("activation");
  if (groups <= 0) cx.invalid(cat("groups=", groups), "1 or more");
  if (activation != 0 && activation != 1)
    cx.invalid(cat("activation=", activation), "0 or 1: none or SiLU");
  const Ints front = {0, 3, 1, 2}, back = {0, 2, 3, 1};
  const DataType dtype = cx.dtype(x);
  Operand y = cx.op("group_norm",
                    {last ? cx.transpose(x, front) : x, cx.cast(cx.in(gamma), dtype),
                     cx.cast(cx.in(beta), dtype)},
                    attrs({{"groups", groups}, {"epsilon", cx.attr_float("epsilon", 1e-5)}}));
  if (last) y = cx.transpose(y, back);
  return activation == 1 ? cx.mul(y, cx.op("sigmoid", {y})) : y;
}

// A value of each channel, or of each channel of each batch entry, to be added to x.
Operand of_channels(NodeContext& cx, const Operand& value, bool last) {
  const Dims d = cx.dims(value);
  if (d.size() > 2) return value;
  const Dim batch = d.size() == 2 ? d[0] : Dim(1);
  return cx.reshape(value, last ? Dims{batch, 1, 1, d.back()} : Dims{batch, d.back(), 1, 1});
}

void require_image(NodeContext& cx) {
  if (cx.rank(0) != 4) cx.invalid(cat("X of rank ", cx.rank(0)), "4");
}

// X, gamma, beta
Operands group_norm(NodeContext& cx) {
  require_image(cx);
  const DataType dtype = widen_inputs(cx);
  return {cx.cast(grouped(cx, cx.in(0), 1, 2), dtype)};
}

// X, gamma, beta, skip, bias -> Y, sum
Operands skip_group_norm(NodeContext& cx) {
  require_image(cx);
  const DataType dtype = widen_inputs(cx);
  const bool last = cx.attr_bool("channels_last", true);
  Operand sum = cx.add(cx.in(0), of_channels(cx, cx.in(3), last));
  if (cx.has(4)) sum = cx.add(sum, of_channels(cx, cx.in(4), last));
  return {cx.cast(grouped(cx, sum, 1, 2), dtype), cx.cast(sum, dtype)};
}

}  // namespace

void register_microsoft_norm(OpTable& t) {
  t.add("SkipLayerNormalization", 1, skip_layer_normalization, kMicrosoft);
  t.add("SkipSimplifiedLayerNormalization", 1, skip_rms_normalization, kMicrosoft);
  t.add("EmbedLayerNormalization", 1, embed_layer_normalization, kMicrosoft);
  t.add("QEmbedLayerNormalization", 1, quantized_embed_layer_normalization, kMicrosoft);
  t.add("GroupNorm", 1, group_norm, kMicrosoft);
  t.add("SkipGroupNorm", 1, skip_group_norm, kMicrosoft);
}

}  // namespace tenon::onnx
