// Normalisations.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// The type in which operands of several float types are computed.
DataType wider(NodeContext& cx) {
  DataType out = cx.dtype(0);
  for (size_t i = 1; i < cx.count(); ++i) {
    if (cx.has(i) && cx.dtype(i) != out) out = out == f64 || cx.dtype(i) == f64 ? f64 : f32;
  }
  return out;
}

// x, and the parameters as one number for each element of x's axis 1.
struct Batch {
  Operand x, scale, bias, mean, variance;
};

// A batch without channels has one channel. Not `spatial`: every element of a batch's member has
// its own statistics, as a channel has otherwise.
Batch batch_of(NodeContext& cx, bool spatial) {
  const Dims shape = cx.dims(0);
  Batch b{cx.in(0), cx.in(1), cx.in(2), cx.in(3), cx.in(4)};
  if (shape.size() == 1) b.x = cx.reshape(b.x, {shape[0], 1});
  if (spatial || shape.size() < 2) return b;
  const Dim elements = product(Dims(shape.begin() + 1, shape.end()));
  b.x = cx.reshape(b.x, {shape[0], elements});
  for (Operand* p : {&b.scale, &b.bias, &b.mean, &b.variance}) *p = cx.reshape(*p, {elements});
  return b;
}

// The statistics of the batch, not those given, normalise it; the running ones move towards them.
// Versions before 14 also return the batch's own.
Operands train(NodeContext& cx, const Batch& b, double epsilon, double momentum) {
  const Dims shape = cx.dims(b.x), given = cx.dims(3);
  if (shape.size() < 2) cx.invalid("an operand of rank 0", "1 or more");
  Ints axes = NodeContext::axes_below(static_cast<int64_t>(shape.size()));
  axes.erase(axes.begin() + 1);
  Dims row(shape.size(), Dim(1));
  row[1] = shape[1];
  const DataType computed = cx.dtype(b.x) == f64 ? f64 : f32;
  auto in_row = [&](const Operand& p) { return cx.reshape(cx.cast(p, computed), row); };
  const Operand x = cx.cast(b.x, computed);
  const Operand mean = cx.reduce("reduce_mean", x, axes, true), centered = cx.sub(x, mean);
  const Operand variance = cx.reduce("reduce_mean", cx.mul(centered, centered), axes, true);
  const Operand deviation = cx.op("sqrt", {cx.add(variance, cx.scalar(computed, epsilon))});
  Operand y = cx.add(cx.mul(cx.div(centered, deviation), in_row(b.scale)), in_row(b.bias));
  auto moved = [&](const Operand& running, const Operand& now) {
    return cx.add(cx.mul(in_row(running), cx.scalar(computed, momentum)),
                  cx.mul(now, cx.scalar(computed, 1 - momentum)));
  };
  auto result = [&](const Operand& statistic) {
    return cx.reshape(cx.cast(statistic, cx.dtype(3)), given);
  };
  Operands out = {cx.reshape(cx.cast(y, cx.dtype(0)), cx.dims(0)), result(moved(b.mean, mean)),
                  result(moved(b.variance, variance))};
  if (cx.version() < 14) {
    out.push_back(result(mean));
    out.push_back(result(variance));
  }
  return out;
}

// Before version 14, a node that returns statistics trains.
Operands batch_normalization(NodeContext& cx) {
  cx.ignore("is_test");
  cx.ignore("consumed_inputs");
  const double epsilon = cx.attr_float("epsilon", 1e-5), momentum = cx.attr_float("momentum", 0.9);
  bool trains = cx.attr_bool("training_mode", false);
  for (size_t i = 1; i < 5 && cx.version() < 14; ++i) trains = trains || cx.wants(i);
  const Batch b = batch_of(cx, cx.attr_bool("spatial", true));
  if (trains) return train(cx, b, epsilon, momentum);
  const DataType dtype = cx.dtype(0), computed = wider(cx);
  Operands all = {b.x, b.scale, b.bias, b.mean, b.variance};
  for (Operand& operand : all) operand = cx.cast(operand, computed);
  Operand y = cx.op("batch_norm", all, attrs({{"axis", 1}, {"epsilon", epsilon}}));
  return {cx.reshape(cx.cast(y, dtype), cx.dims(0))};
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
  const DataType stash = cx.attr_dtype("stash_type", f32);
  bool statistics = cx.wants(1) || cx.wants(2);
  Operands all =
      cx.b.ops("layer_norm", {cx.in(0), cx.opt(1), cx.opt(2)},
               attrs({{"axis", axis}, {"epsilon", epsilon}, {"statistics", statistics}}));
  // They are computed in f32, or in f64 if x is.
  for (size_t i = 1; i < all.size(); ++i) all[i] = cx.cast(all[i], stash);
  return all;
}

// The second result, of SimplifiedLayerNormalization, is what x is multiplied by.
Operands rms_normalization(NodeContext& cx) {
  const int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  const double epsilon = cx.attr_float("epsilon", 1e-5);
  cx.attr_dtype("stash_type", f32);
  Operands out = {
      cx.op("rms_norm", {cx.in(0), cx.opt(1)}, attrs({{"axis", axis}, {"epsilon", epsilon}}))};
  if (cx.wants(1)) {
    const Operand x = cx.cast(cx.in(0), cx.dtype(0) == f64 ? f64 : f32);
    Ints axes;
    for (int64_t i = axis; i < cx.rank(0); ++i) axes.push_back(i);
    const Operand square = cx.reduce("reduce_mean", cx.mul(x, x), axes, true);
    out.push_back(cx.op("rsqrt", {cx.add(square, cx.scalar_like(square, epsilon))}));
  }
  return out;
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
  // Before version 9, the channels were told apart unless `across_channels`.
  Ints standard = {0, 2, 3};
  if (cx.version() < 9 && !cx.has_attr("axes")) {
    if (cx.rank(0) < 2) cx.invalid(cat("an operand of rank ", cx.rank(0)), "2 or more");
    standard = NodeContext::axes_below(cx.rank(0));
    if (!cx.attr_bool("across_channels", false)) standard.erase(standard.begin() + 1);
  }
  Ints axes = cx.axes(cx.attr_ints("axes", standard), cx.rank(0));
  Operand mean = cx.reduce("reduce_mean", x, axes, true);
  Operand centered = cx.sub(x, mean);
  if (cx.version() < 9 && !cx.attr_bool("normalize_variance", true)) return {centered};
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
  t.add("LRN", 1, lrn);
  t.add("LpNormalization", 1, widened<lp_normalization>);
  t.add("MeanVarianceNormalization", 1, widened<mean_variance_normalization>);
}

}  // namespace tenon::onnx
