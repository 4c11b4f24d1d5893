// Normalisations.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

Operands batch_normalization(NodeContext& cx) {
  cx.ignore("momentum");
  cx.ignore("is_test");
  cx.ignore("consumed_inputs");
  if (cx.attr_bool("training_mode", false)) cx.unsupported("training_mode=1 not implemented");
  if (!cx.attr_bool("spatial", true)) cx.unsupported("spatial=0 not implemented");
  for (size_t i = 1; i < 5; ++i) {
    if (cx.wants(i)) cx.unsupported("the outputs of training not implemented");
  }
  double epsilon = cx.attr_float("epsilon", 1e-5);
  if (cx.rank(0) == 1) {  // a batch of one channel
    Dims shape = cx.dims(0);
    Operand column = cx.reshape(cx.in(0), {shape[0], 1});
    Operand y = cx.op("batch_norm", {column, cx.in(1), cx.in(2), cx.in(3), cx.in(4)},
                      attrs({{"axis", 1}, {"epsilon", epsilon}}));
    return {cx.reshape(y, shape)};
  }
  return {cx.op("batch_norm", {cx.in(0), cx.in(1), cx.in(2), cx.in(3), cx.in(4)},
                attrs({{"axis", 1}, {"epsilon", epsilon}}))};
}

Operands instance_normalization(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {cx.op("instance_norm", {cx.in(0), cx.in(1), cx.in(2)},
                attrs({{"epsilon", cx.attr_float("epsilon", 1e-5)}}))};
}

// Before opset 21, scale and bias are per group.
Operands group_normalization(NodeContext& cx) {
  int64_t groups = cx.attr_int("num_groups");
  if (groups <= 0) cx.invalid(cat("num_groups=", groups), "1 or more");
  cx.attr_dtype("stash_type", f32);
  Operand scale = cx.in(1), bias = cx.in(2);
  Dim channels = cx.rank(0) > 1 ? cx.dims(0)[1] : Dim(1);
  if (cx.version() < 21 && cx.dims(scale) != Dims{channels}) {
    Dim per_group = floordiv(channels, groups);
    auto spread = [&](const Operand& v) {
      Operand column = cx.reshape(v, {groups, 1});
      return cx.reshape(cx.expand(column, {groups, per_group}), {channels});
    };
    scale = spread(scale);
    bias = spread(bias);
  }
  return {cx.op("group_norm", {cx.in(0), scale, bias},
                attrs({{"groups", groups}, {"epsilon", cx.attr_float("epsilon", 1e-5)}}))};
}

Operands layer_normalization(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  double epsilon = cx.attr_float("epsilon", 1e-5);
  cx.attr_dtype("stash_type", f32);
  bool statistics = cx.wants(1) || cx.wants(2);
  Operands all =
      cx.b.ops("layer_norm", {cx.in(0), cx.opt(1), cx.opt(2)},
               attrs({{"axis", axis}, {"epsilon", epsilon}, {"statistics", statistics}}));
  return all;
}

Operands rms_normalization(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  cx.attr_dtype("stash_type", f32);
  return {cx.op("rms_norm", {cx.in(0), cx.opt(1)},
                attrs({{"axis", axis}, {"epsilon", cx.attr_float("epsilon", 1e-5)}}))};
}

// com.microsoft: x + skip (+ bias), normalised; the sum is the fourth output.
Operand skip_sum(NodeContext& cx, size_t bias) {
  Operand sum = cx.add(cx.in(0), cx.in(1));
  return cx.has(bias) ? cx.add(sum, cx.in(bias)) : sum;
}

Operands skip_layer_normalization(NodeContext& cx) {
  if (cx.wants(1) || cx.wants(2)) cx.unsupported("mean and variance outputs not implemented");
  Operand sum = skip_sum(cx, 4);
  double epsilon = cx.attr_float("epsilon", 1e-12);
  Operand y =
      cx.op("layer_norm", {sum, cx.in(2), cx.opt(3)}, attrs({{"axis", -1}, {"epsilon", epsilon}}));
  return {y, {}, {}, sum};
}

Operands skip_rms_normalization(NodeContext& cx) {
  if (cx.wants(1) || cx.wants(2)) cx.unsupported("mean and variance outputs not implemented");
  Operand sum = skip_sum(cx, 3);
  double epsilon = cx.attr_float("epsilon", 1e-12);
  return {
      cx.op("rms_norm", {sum, cx.in(2)}, attrs({{"axis", -1}, {"epsilon", epsilon}})), {}, {}, sum};
}

Operands lrn(NodeContext& cx) {
  return {cx.op("lrn", {cx.in(0)},
                attrs({{"size", cx.attr_int("size")},
                       {"alpha", cx.attr_float("alpha", 0.0001)},
                       {"beta", cx.attr_float("beta", 0.75)},
                       {"bias", cx.attr_float("bias", 1.0)}}))};
}

Operands lp_normalization(NodeContext& cx) {
  Operand x = cx.in(0);
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  int64_t p = cx.attr_int("p", 2);
  Operand norm;
  if (p == 1) {
    norm = cx.reduce("reduce_sum", cx.op("abs", {x}), {axis}, true);
  } else if (p == 2) {
    norm = cx.op("sqrt", {cx.reduce("reduce_sum", cx.mul(x, x), {axis}, true)});
  } else {
    cx.invalid(cat("p=", p), "1 or 2");
  }
  // A vector of norm 0 stays 0.
  Operand zero = cx.scalar_like(x, 0);
  Operand safe = cx.op("where", {cx.op("equal", {norm, zero}), cx.scalar_like(x, 1), norm});
  return {cx.div(x, safe)};
}

Operands mean_variance_normalization(NodeContext& cx) {
  Operand x = cx.in(0);
  Ints axes = cx.axes(cx.attr_ints("axes", {0, 2, 3}), cx.rank(0));
  Operand mean = cx.reduce("reduce_mean", x, axes, true);
  Operand centered = cx.sub(x, mean);
  Operand variance = cx.reduce("reduce_mean", cx.mul(centered, centered), axes, true);
  Operand deviation = cx.add(cx.op("sqrt", {variance}), cx.scalar_like(x, 1e-9));
  return {cx.div(centered, deviation)};
}

}  // namespace

void register_norm(OpTable& t) {
  t.add("BatchNormalization", 1, batch_normalization);
  t.add("InstanceNormalization", 1, instance_normalization);
  t.add("GroupNormalization", 18, group_normalization);
  t.add("LayerNormalization", 1, layer_normalization);  // since 17, but models use it earlier
  t.add("LayerNormalization", 1, layer_normalization, kMicrosoft);
  t.add("RMSNormalization", 23, rms_normalization);
  t.add("SimplifiedLayerNormalization", 1, rms_normalization);
  t.add("SimplifiedLayerNormalization", 1, rms_normalization, kMicrosoft);
  t.add("SkipLayerNormalization", 1, skip_layer_normalization, kMicrosoft);
  t.add("SkipSimplifiedLayerNormalization", 1, skip_rms_normalization, kMicrosoft);
  t.add("LRN", 1, lrn);
  t.add("LpNormalization", 1, widened<lp_normalization>);
  t.add("MeanVarianceNormalization", 9, widened<mean_variance_normalization>);
}

}  // namespace tenon::onnx
