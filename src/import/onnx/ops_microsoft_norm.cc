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

// The first two operands, x + skip (+ bias); the skip may lack the batch, or have it as 1.
Operand skip_sum(NodeContext& cx, size_t bias) {
  const Operand sum = cx.add(cx.in(0), cx.in(1));
  return cx.has(bias) ? cx.add(sum, cx.in(bias)) : sum;
}

// -> output, mean, 1 / deviation, sum
Operands skip_layer_normalization(NodeContext& cx) {
  enum : size_t { kInput, kSkip, kGamma, kBeta, kBias };
  const DataType dtype = widen_inputs(cx);
  const Operand sum = skip_sum(cx, kBias);
  const bool statistics = cx.wants(1) || cx.wants(2);
  Operands out = cx.b.ops("layer_norm", {sum, cx.in(kGamma), cx.opt(kBeta)},
                          attrs({{"axis", -1},
                                 {"epsilon", cx.attr_float("epsilon", 1e-12)},
                                 {"statistics", statistics}}));
  out[0] = cx.cast(out[0], dtype);
  out.resize(3);
  out.push_back(cx.cast(sum, dtype));
  return out;
}

// -> output, mean (which RMS normalisation has none of), 1 / root, sum
Operands skip_rms_normalization(NodeContext& cx) {
  enum : size_t { kInput, kSkip, kGamma, kBias };
  const DataType dtype = widen_inputs(cx);
  const Operand sum = skip_sum(cx, kBias);
  const double epsilon = cx.attr_float("epsilon", 1e-12);
  const Operand y =
      cx.op("rms_norm", {sum, cx.in(kGamma)}, attrs({{"axis", -1}, {"epsilon", epsilon}}));
  Operand inverse;
  if (cx.wants(2)) {
    const Operand square = cx.reduce("reduce_mean", cx.mul(sum, sum), {cx.rank(sum) - 1}, true);
    inverse = cx.op("rsqrt", {cx.add(square, cx.scalar_like(square, epsilon))});
  }
  return {cx.cast(y, dtype), {}, inverse, cx.cast(sum, dtype)};
}

// Operands of EmbedLayerNormalization and, up to kMask, of QEmbedLayerNormalization.
enum EmbeddingOperand : size_t {
  kIds,
  kSegmentIds,
  kWordEmbedding,
  kPositionEmbedding,
  kSegmentEmbedding,
  kEmbeddingGamma,
  kEmbeddingBeta,
  kMask,
  kPositionIds
};

// Of a quantised embedding, the tables, gamma and beta are 8-bit numbers, whose scales follow the
// mask and whose zero points follow the scales, in the same order.
constexpr size_t kFirstScale = kMask + 1;
constexpr size_t kFirstZero = kFirstScale + (kEmbeddingBeta - kWordEmbedding + 1);

Operand real(NodeContext& cx, EmbeddingOperand i, const Operand& x) {
  auto single = [&](size_t first) { return cx.reshape(cx.in(first + i - kWordEmbedding), {}); };
  return cx.op("dequantize_linear", {x, single(kFirstScale), single(kFirstZero)});
}

// -> output, the number of tokens that the mask keeps, sum of the embeddings
Operands embedding(NodeContext& cx, bool quantized) {
  const Dims ids = cx.dims(kIds);
  if (ids.size() != 2) cx.invalid(cat("input_ids of rank ", ids.size()), "2");
  if (cx.has(kSegmentIds) != cx.has(kSegmentEmbedding))
    cx.invalid("one of segment_ids and segment_embedding", "both or neither");
  auto floats = [&](EmbeddingOperand i, const Operand& x) {
    return quantized ? real(cx, i, x) : x;
  };
  auto whole = [&](EmbeddingOperand i) { return floats(i, cx.in(i)); };
  auto rows = [&](EmbeddingOperand table, size_t indices) {
    return floats(table, cx.op("gather", {cx.in(table), cx.in(indices)}, attrs({{"axis", 0}})));
  };
  const bool places = !quantized && cx.has(kPositionIds);
  const Operand positions =
      places ? rows(kPositionEmbedding, kPositionIds)
             : floats(kPositionEmbedding, cx.slice(cx.in(kPositionEmbedding), 0, 0, ids[1]));
  Operand sum = cx.add(rows(kWordEmbedding, kIds), positions);
  if (cx.has(kSegmentIds)) sum = cx.add(sum, rows(kSegmentEmbedding, kSegmentIds));
  const Operand y = cx.op("layer_norm", {sum, whole(kEmbeddingGamma), whole(kEmbeddingBeta)},
                          attrs({{"axis", -1}, {"epsilon", cx.attr_float("epsilon", 1e-12)}}));
  Operand kept = cx.full(i32, 0, {ids[0]});
  if (cx.has(kMask)) {
    const Operand is_kept = cx.op("equal", {cx.in(kMask), cx.scalar_like(cx.in(kMask), 1)});
    kept = cx.reduce("reduce_sum", cx.cast(is_kept, i32), {1}, false);
  }
  return {y, kept, sum};
}

Operands embed_layer_normalization(NodeContext& cx) {
  cx.ignore("mask_index_type");  // whether the second result exists, which the node says, too
  const DataType dtype = cx.dtype(kWordEmbedding);
  if (dtype.is_narrow_float()) cx.cast_inputs(dtype, f32);
  Operands out = embedding(cx, false);
  return {cx.cast(out[0], dtype), out[1], cx.cast(out[2], dtype)};
}

Operands quantized_embed_layer_normalization(NodeContext& cx) {
  Operands out = embedding(cx, true);
  out.pop_back();
  return out;
}

// Operands of GroupNorm, which are the first of SkipGroupNorm's.
enum : size_t { kImage, kGamma, kBeta, kSkip, kBias };

// x, of which channels are the second axis or the last, normalised by groups of channels.
Operand grouped(NodeContext& cx, const Operand& x) {
  const bool last = cx.attr_bool("channels_last", true);
  const int64_t groups = cx.attr_int("groups"), activation = cx.attr_int("activation");
  if (groups <= 0) cx.invalid(cat("groups=", groups), "1 or more");
  if (activation != 0 && activation != 1)
    cx.invalid(cat("activation=", activation), "0 or 1: none or SiLU");
  const Ints front = {0, 3, 1, 2}, back = {0, 2, 3, 1};
  const DataType dtype = cx.dtype(x);
  Operand y = cx.op("group_norm",
                    {last ? cx.transpose(x, front) : x, cx.cast(cx.in(kGamma), dtype),
                     cx.cast(cx.in(kBeta), dtype)},
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
  if (cx.rank(kImage) != 4) cx.invalid(cat("X of rank ", cx.rank(kImage)), "4");
}

Operands group_norm(NodeContext& cx) {
  require_image(cx);
  const DataType dtype = widen_inputs(cx);
  return {cx.cast(grouped(cx, cx.in(kImage)), dtype)};
}

// -> Y, sum
Operands skip_group_norm(NodeContext& cx) {
  require_image(cx);
  const DataType dtype = widen_inputs(cx);
  const bool last = cx.attr_bool("channels_last", true);
  Operand sum = cx.add(cx.in(kImage), of_channels(cx, cx.in(kSkip), last));
  if (cx.has(kBias)) sum = cx.add(sum, of_channels(cx, cx.in(kBias), last));
  return {cx.cast(grouped(cx, sum), dtype), cx.cast(sum, dtype)};
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
