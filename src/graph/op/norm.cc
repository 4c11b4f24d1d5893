// Normalisations: softmax and its logarithm over one axis; layer, rms, instance, group and batch
// norm; local response normalisation. f16 is computed in f32 throughout.
//
// A variance is computed as the mean of squared distances from the mean, because the mean square
// minus the squared mean suffers from cancellation.
#include "graph/op/families.h"
#include "graph/op/rows.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t i = first; i < rank; ++i) out.push_back(i);
  return out;
}

Scalar wide_load(const BufferRef& b, const Indices& i) {
  return as(wide(b->dtype), load(b, i));
}

// The mean of each row and 1 / sqrt(variance + epsilon), as stages.
struct Moments {
  BufferRef mean, inverse_deviation;
  std::vector<StageRef> stages;
};

// `mean` receives the means; if null, they get a buffer of their own.
Moments moments(const Rows& rows, const BufferRef& x, double epsilon, BufferRef mean = nullptr,
                BufferRef inverse = nullptr) {
  DataType dtype = wide(x->dtype);
  Scalar count = as(dtype, size(rows.count()));
  BufferRef sum = rows.buffer("sum", dtype), squares = rows.buffer("squares", dtype);
  if (!mean) mean = rows.buffer("mean", dtype);
  if (!inverse) inverse = rows.buffer("inverse_deviation", dtype);
  Moments m{mean, inverse, {}};
  m.stages.push_back(
      rows.reduce(sum, Reduction::kSum, [&](const Indices& i) { return wide_load(x, i); }));
  m.stages.push_back(map_stage(mean, [&](const Indices& r) { return load(sum, r) / count; }));
  m.stages.push_back(rows.reduce(squares, Reduction::kSum, [&](const Indices& i) {
    Scalar distance = wide_load(x, i) - load(mean, rows.row(i));
    return distance * distance;
  }));
  m.stages.push_back(map_stage(inverse, [&](const Indices& r) {
    Scalar variance = load(squares, r) / count;
    return number(dtype, 1) / unary(UnaryOp::kSqrt, variance + number(dtype, epsilon));
  }));
  return m;
}

// ---- softmax ----

TypeRef infer_softmax(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  cx.axis(cx.attr_int("axis"), x.rank);
  return tensor_type(x.dtype, dims_of(x));
}

// Whether a row's exponentials are worth their memory, rather than computed twice: if its elements
// are neighbours, and few enough for a cache.
bool keeps_exponentials(const std::vector<Dim>& dims, int64_t axis) {
  constexpr int64_t kMost = 1 << 15;
  const bool is_last = axis + 1 == static_cast<int64_t>(dims.size());
  return is_last && dims.back().as_const().value_or(0) <= kMost;
}

// Softmax or its logarithm.
template <bool kLogarithm>
loop::ComputeRef lower_softmax(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  int64_t axis = cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank);
  Rows rows(dims_of(x), {axis}, false);
  DataType dtype = wide(x->dtype);
  BufferRef top = rows.buffer("top", dtype), sum = rows.buffer("sum", dtype);
  auto below_top = [&](const Indices& i) { return wide_load(x, i) - load(top, rows.row(i)); };
  auto exponential = [&](const Indices& i) { return unary(UnaryOp::kExp, below_top(i)); };
  std::vector<StageRef> stages{
      rows.reduce(top, Reduction::kMax, [&](const Indices& i) { return wide_load(x, i); })};
  if (kLogarithm) {
    stages.push_back(rows.reduce(sum, Reduction::kSum, exponential));
    stages.push_back(map_stage(y, [&](const Indices& i) {
      return as(y->dtype, below_top(i) - unary(UnaryOp::kLog, load(sum, rows.row(i))));
    }));
    return cx.compute(stages);
  }
  BufferRef terms;
  if (keeps_exponentials(dims_of(x), axis)) {
    terms = loop::buffer("terms", dtype, dims_of(x));
    stages.push_back(map_stage(terms, exponential));
  }
  auto term = [&](const Indices& i) { return terms ? load(terms, i) : exponential(i); };
  BufferRef share = rows.buffer("share", dtype);
  stages.push_back(rows.reduce(sum, Reduction::kSum, term));
  stages.push_back(
      map_stage(share, [&](const Indices& i) { return number(dtype, 1) / load(sum, i); }));
  stages.push_back(map_stage(
      y, [&](const Indices& i) { return as(y->dtype, term(i) * load(share, rows.row(i))); }));
  return cx.compute(stages);
}

Sample sample_softmax(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size());
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)},
          attrs({{"axis", random.between(-rank, rank - 1)}})};
}

// ---- layer_norm, rms_norm ----

// Requires that operand i broadcasts to x without widening it.
void require_fits(InferContext& cx, size_t i, const std::vector<Dim>& dims) {
  std::vector<Dim> own = dims_of(cx.tensor(i));
  if (own.size() > dims.size()) {
    cx.fail(cat(cx.operand_text(i), " has rank ", own.size(), ", more than 'x'"));
  }
  for (size_t k = 0; k < own.size(); ++k) {
    const Dim& d = dims[dims.size() - own.size() + k];
    if (own[k].is_const(1)) continue;
    cx.require_equal(own[k], d, cat("axis ", k, " of ", cx.operand_text(i), " and of 'x'"));
  }
}

// Loads an operand that broadcasts to x, at an element of x.
Scalar load_fitting(const BufferRef& b, const Indices& element, const std::vector<Dim>& dims) {
  size_t skipped = dims.size() - b->shape.size();
  Indices indices;
  for (size_t k = 0; k < b->shape.size(); ++k) {
    const Dim& own = b->shape[k];
    indices.push_back(own.is_const(1) ? index(0)
                                      : within(element[skipped + k], dims[skipped + k], own));
  }
  return as(wide(b->dtype), load(b, indices));
}

TypeRef infer_rms_norm(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  cx.axis(cx.attr_int("axis"), x.rank);
  for (size_t i = 1; i < cx.arg_count(); ++i) {
    if (cx.has(i)) require_fits(cx, i, dims_of(x));
  }
  return tensor_type(x.dtype, dims_of(x));
}

TypeRef infer_layer_norm(InferContext& cx) {
  TypeRef y = infer_rms_norm(cx);
  if (!cx.attr_bool("statistics")) return y;
  const TensorType& x = cx.tensor(0);
  Rows rows(dims_of(x), axes_from(cx.axis(cx.attr_int("axis"), x.rank), x.rank), true);
  TypeRef statistic = tensor_type(wide(x.dtype), rows.reduced_dims());
  return tuple_type({y, statistic, statistic});
}

// The last stage of a normalisation: y = x_hat * scale + bias, computed in wide(dtype of x).
Scalar scaled(const LowerContext& cx, const Scalar& normalized, const Indices& i) {
  std::vector<Dim> dims = dims_of(cx.input(0));
  DataType dtype = normalized->dtype;
  Scalar y = normalized;
  if (cx.info().has(1)) y = y * as(dtype, load_fitting(cx.input(1), i, dims));
  if (cx.info().has(2)) y = y + as(dtype, load_fitting(cx.input(2), i, dims));
  return as(cx.output()->dtype, y);
}

loop::ComputeRef lower_layer_norm(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef& x = cx.input(0);
  int64_t rank = info.tensor(0).rank;
  Rows rows(dims_of(x), axes_from(info.axis(info.attr_int("axis"), rank), rank), true);
  bool statistics = info.attr_bool("statistics");
  Moments m = moments(rows, x, info.attr_float("epsilon"), statistics ? cx.output(1) : nullptr,
                      statistics ? cx.output(2) : nullptr);
  m.stages.push_back(map_stage(cx.output(), [&](const Indices& i) {
    Indices r = rows.row(i);
    return scaled(cx, (wide_load(x, i) - load(m.mean, r)) * load(m.inverse_deviation, r), i);
  }));
  return cx.compute(m.stages);
}

loop::ComputeRef lower_rms_norm(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef& x = cx.input(0);
  DataType dtype = wide(x->dtype);
  int64_t rank = info.tensor(0).rank;
  Rows rows(dims_of(x), axes_from(info.axis(info.attr_int("axis"), rank), rank), false);
  BufferRef squares = rows.buffer("squares", dtype), inverse = rows.buffer("inverse_rms", dtype);
  return cx.compute({rows.reduce(squares, Reduction::kSum,
                                 [&](const Indices& i) {
                                   Scalar v = wide_load(x, i);
                                   return v * v;
                                 }),
                     map_stage(inverse,
                               [&](const Indices& r) {
                                 Scalar mean = load(squares, r) / as(dtype, size(rows.count()));
                                 return number(dtype, 1) /
                                        unary(UnaryOp::kSqrt,
                                              mean + number(dtype, info.attr_float("epsilon")));
                               }),
                     map_stage(cx.output(), [&](const Indices& i) {
                       return scaled(cx, wide_load(x, i) * load(inverse, rows.row(i)), i);
                     })});
}

Sample sample_layer_norm_of(const Operator& op, uint64_t seed, size_t optional,
                            bool has_statistics) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1);
  Sample s{{sample_tensor(dtype, shape)}, attrs({{"axis", random.coin() ? axis : axis - rank}})};
  if (has_statistics) s.attrs.set("statistics", random.coin());
  for (size_t i = 0; i < optional; ++i) {
    s.operands.push_back(random.coin() ? sample_tensor(dtype, {shape.begin() + axis, shape.end()})
                                       : unit_type());
  }
  return s;
}

Sample sample_layer_norm(const Operator& op, uint64_t seed) {
  return sample_layer_norm_of(op, seed, 2, true);
}
Sample sample_rms_norm(const Operator& op, uint64_t seed) {
  return sample_layer_norm_of(op, seed, 1, false);
}

// ---- norms with parameters per channel ----

// Requires that operand i has the shape [C].
void require_channels(InferContext& cx, size_t i, const Dim& channels) {
  require_rank(cx, i, 1);
  cx.require_equal(cx.tensor(i).dims[0], channels,
                   cat("size of ", cx.operand_text(i), " and channels of 'x'"));
}

Scalar channel_load(const BufferRef& b, const Scalar& channel, const Dim& channels,
                    DataType dtype) {
  return as(dtype, load_within(b, {channel}, {channels}));
}

TypeRef infer_channel_norm(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 2) cx.fail(cat(cx.operand_text(0), " has rank ", x.rank, ", expected at least 2"));
  for (size_t i : {1, 2}) require_channels(cx, i, x.dims[1]);
  return tensor_type(x.dtype, dims_of(x));
}

TypeRef infer_group_norm(InferContext& cx) {
  TypeRef y = infer_channel_norm(cx);
  int64_t groups = cx.attr_int("groups");
  if (groups < 1) cx.fail(cat("'groups' is ", groups, ", expected at least 1"));
  cx.require_equal(mod(cx.tensor(0).dims[1], groups), 0,
                   cat("channels of 'x' modulo ", groups, " groups"));
  return y;
}

loop::ComputeRef lower_instance_norm(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &y = cx.output();
  DataType dtype = wide(x->dtype);
  Rows rows(dims_of(x), axes_from(2, info.tensor(0).rank), false);
  Moments m = moments(rows, x, info.attr_float("epsilon"));
  m.stages.push_back(map_stage(y, [&](const Indices& i) {
    Indices r = rows.row(i);
    Scalar normalized = (wide_load(x, i) - load(m.mean, r)) * load(m.inverse_deviation, r);
    return as(y->dtype, normalized * channel_load(cx.input(1), i[1], x->shape[1], dtype) +
                            channel_load(cx.input(2), i[1], x->shape[1], dtype));
  }));
  return cx.compute(m.stages);
}

// An instance norm of x seen as [N, groups, C / groups, ...].
loop::ComputeRef lower_group_norm(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &y = cx.output();
  DataType dtype = wide(x->dtype);
  int64_t groups = info.attr_int("groups");
  Dim channels = x->shape[1], per_group = floordiv(channels, groups);
  std::vector<Dim> dims = dims_of(x);
  dims.erase(dims.begin() + 1);
  dims.insert(dims.begin() + 1, {Dim(groups), per_group});
  BufferRef grouped = loop::buffer("grouped", dtype, dims);
  Rows rows(dims, axes_from(2, info.tensor(0).rank + 1), false);
  Moments m = moments(rows, grouped, info.attr_float("epsilon"));
  m.stages.insert(m.stages.begin(), map_stage(grouped, [&](const Indices& i) {
                    Indices element = i;
                    element.erase(element.begin() + 1);
                    element[1] = i[1] * size(per_group) + i[2];
                    return wide_load(x, element);
                  }));
  m.stages.push_back(map_stage(y, [&](const Indices& i) {
    Scalar group = floor_div(i[1], size(per_group));
    // Channels beyond the last whole group have no group of their own.
    if (!proves_equal(per_group * groups, channels)) group = min_of(group, index(groups - 1));
    Indices r = {i[0], group};
    Scalar normalized = (wide_load(x, i) - load(m.mean, r)) * load(m.inverse_deviation, r);
    return as(y->dtype, normalized * channel_load(cx.input(1), i[1], channels, dtype) +
                            channel_load(cx.input(2), i[1], channels, dtype));
  }));
  return cx.compute(m.stages);
}

Sample sample_channel_norm(const Operator& op, uint64_t seed, int64_t groups) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(2, 4);
  if (groups > 0) shape[1] = groups * random.between(1, 2);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  Sample s{{sample_tensor(dtype, shape), sample_tensor(dtype, {shape[1]}),
            sample_tensor(dtype, {shape[1]})},
           {}};
  if (groups > 0) s.attrs = attrs({{"groups", groups}});
  return s;
}

Sample sample_instance_norm(const Operator& op, uint64_t seed) {
  return sample_channel_norm(op, seed, 0);
}
Sample sample_group_norm(const Operator& op, uint64_t seed) {
  return sample_channel_norm(op, seed, 1 + static_cast<int64_t>(seed % 3));
}

// ---- batch_norm ----

TypeRef infer_batch_norm(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  for (size_t i : {1, 2, 3, 4}) require_channels(cx, i, x.dims[axis]);
  return tensor_type(x.dtype, dims_of(x));
}

// y = (x - mean) * (scale / sqrt(var + epsilon)) + bias, where the factor is computed once per
// channel.
loop::ComputeRef lower_batch_norm(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &y = cx.output();
  size_t axis = static_cast<size_t>(info.axis(info.attr_int("axis"), info.tensor(0).rank));
  const Dim& channels = x->shape[axis];
  DataType dtype = wide(x->dtype);
  for (size_t i : {1, 2, 3, 4}) {
    if (cx.input(i)->dtype.bits > dtype.bits) dtype = cx.input(i)->dtype;
  }
  auto parameter = [&](size_t i, const Scalar& channel) {
    return channel_load(cx.input(i), channel, channels, dtype);
  };
  BufferRef factor = loop::buffer("factor", dtype, {channels});
  return cx.compute({map_stage(factor,
                               [&](const Indices& c) {
                                 Scalar deviation = unary(
                                     UnaryOp::kSqrt, parameter(4, c[0]) +
                                                         number(dtype, info.attr_float("epsilon")));
                                 return parameter(1, c[0]) / deviation;
                               }),
                     map_stage(y, [&](const Indices& i) {
                       const Scalar& c = i[axis];
                       Scalar centered = as(dtype, load(x, i)) - parameter(3, c);
                       return as(y->dtype, centered * load(factor, Indices{c}) + parameter(2, c));
                     })});
}

Sample sample_batch_norm(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(2, 4);
  int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  Sample s{{sample_tensor(dtype, shape)}, attrs({{"axis", axis}})};
  for (int i = 0; i < 4; ++i) {
    s.operands.push_back(sample_tensor(dtype, {shape[static_cast<size_t>(axis)]}));
  }
  return s;
}

// ---- lrn ----

TypeRef infer_lrn(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  cx.axis(cx.attr_int("axis"), x.rank);
  if (cx.attr_int("size") < 1)
    cx.fail(cat("'size' is ", cx.attr_int("size"), ", expected at least 1"));
  return tensor_type(x.dtype, dims_of(x));
}

// The window of channel c is [c - floor((size - 1) / 2), c + ceil((size - 1) / 2)], clipped to the
// axis.
loop::ComputeRef lower_lrn(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &y = cx.output();
  size_t axis = static_cast<size_t>(info.axis(info.attr_int("axis"), info.tensor(0).rank));
  int64_t window = info.attr_int("size");
  DataType dtype = wide(x->dtype);
  BufferRef squares = loop::buffer("squares", dtype, dims_of(x));
  return cx.compute({loop::reduce_stage(squares, Reduction::kSum, {Dim(window)},
                                        [&](const Indices& i, const Indices& k) {
                                          Indices at = i;
                                          at[axis] = i[axis] + k[0] - index((window - 1) / 2);
                                          Scalar value = wide_load(x, at);
                                          return select(in_range(at[axis], x->shape[axis]),
                                                        value * value, number(dtype, 0));
                                        }),
                     map_stage(y, [&](const Indices& i) {
                       Scalar scale =
                           number(dtype, info.attr_float("bias")) +
                           number(dtype, info.attr_float("alpha") / static_cast<double>(window)) *
                               load(squares, i);
                       Scalar power =
                           binary(BinaryOp::kPow, scale, number(dtype, info.attr_float("beta")));
                       return as(y->dtype, wide_load(x, i) / power);
                     })});
}

Sample sample_lrn(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(2, 4))},
          attrs({{"size", random.between(1, 5)}, {"bias", 2.0}})};
}

const AttrSpec kEpsilon = {"epsilon", AttrKind::kFloat, "1e-05", "added to the variance"};

}  // namespace

void register_norm(OperatorTable& table) {
  auto softmax = [&](const char* name, const char* summary, LowerFn lower) {
    table.add({.name = name,
               .kind = OpKind::kNormalization,
               .operands = {{"x", kFloats}},
               .attrs = {{"axis", AttrKind::kInt, "-1", "along which the exponentials sum to 1"}},
               .summary = summary,
               .infer = infer_softmax,
               .lower = lower,
               .sample = sample_softmax});
  };
  softmax("softmax", "exp(x) over its sum along the axis", lower_softmax<false>);
  softmax("log_softmax", "the logarithm of softmax", lower_softmax<true>);
  table.add({.name = "layer_norm",
             .kind = OpKind::kNormalization,
             .operands = {{"x", kFloats},
                          {"scale", kFloats, OperandSpec::kOptional},
                          {"bias", kFloats, OperandSpec::kOptional}},
             .attrs = {{"axis", AttrKind::kInt, "-1", "first of the axes normalised together"},
                       kEpsilon,
                       {"statistics", AttrKind::kBool, "false",
                        "the result is (y, mean, 1 / deviation)"}},
             .summary = "(x - mean) / deviation * scale + bias over the last axes",
             .infer = infer_layer_norm,
             .lower = lower_layer_norm,
             .sample = sample_layer_norm});
  table.add({.name = "rms_norm",
             .kind = OpKind::kNormalization,
             .operands = {{"x", kFloats}, {"scale", kFloats, OperandSpec::kOptional}},
             .attrs = {{"axis", AttrKind::kInt, "-1", "first of the axes normalised together"},
                       {"epsilon", AttrKind::kFloat, "1e-05", "added to the mean square"}},
             .summary = "x / sqrt(mean square + epsilon) * scale over the last axes",
             .infer = infer_rms_norm,
             .lower = lower_rms_norm,
             .sample = sample_rms_norm});
  table.add({.name = "instance_norm",
             .kind = OpKind::kNormalization,
             .operands = {{"x", kFloats}, {"scale", kFloats}, {"bias", kFloats}},
             .attrs = {kEpsilon},
             .summary = "x [N, C, ...] normalised per N and C",
             .infer = infer_channel_norm,
             .lower = lower_instance_norm,
             .sample = sample_instance_norm});
  table.add(
      {.name = "group_norm",
       .kind = OpKind::kNormalization,
       .operands = {{"x", kFloats}, {"scale", kFloats}, {"bias", kFloats}},
       .attrs = {{"groups", AttrKind::kInt, nullptr, "of channels, a divisor of C"}, kEpsilon},
       .summary = "x [N, C, ...] normalised per N and group of channels",
       .infer = infer_group_norm,
       .lower = lower_group_norm,
       .sample = sample_group_norm});
  table.add({.name = "batch_norm",
             .kind = OpKind::kBroadcast,
             .operands = {{"x", kFloats},
                          {"scale", kFloats},
                          {"bias", kFloats},
                          {"mean", kFloats},
                          {"var", kFloats}},
             .attrs = {{"axis", AttrKind::kInt, "1", "of the channels"}, kEpsilon},
             .summary = "(x - mean) / sqrt(var + epsilon) * scale + bias, each [C]",
             .infer = infer_batch_norm,
             .lower = lower_batch_norm,
             .sample = sample_batch_norm,
             .layout = LayoutRule::kNamedAxes});
  table.add({.name = "lrn",
             .kind = OpKind::kNormalization,
             .operands = {{"x", kFloats}},
             .attrs = {{"size", AttrKind::kInt, nullptr, "of the window over the axis"},
                       {"alpha", AttrKind::kFloat, "0.0001", "factor of the mean square"},
                       {"beta", AttrKind::kFloat, "0.75", "exponent"},
                       {"bias", AttrKind::kFloat, "1.0", "added to the mean square"},
                       {"axis", AttrKind::kInt, "1", "of the channels"}},
             .summary = "x / (bias + alpha * mean square of near channels)^beta",
             .infer = infer_lrn,
             .lower = lower_lrn,
             .sample = sample_lrn,
             .layout = LayoutRule::kNamedAxes});
}

}  // namespace tenon::graph
