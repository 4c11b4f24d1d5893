// Convolution and its transpose over 1 to 3 spatial axes. f16 is summed in f32. conv_integer is the
// convolution of integers of 8 bits, less their zero points, summed in i32, as ONNX's ConvInteger.
#include <utility>

#include "graph/ir/rewrite.h"
#include "graph/op/families.h"
#include "graph/op/integer_product.h"
#include "graph/op/spatial.h"

namespace tenon::graph {
namespace {

// The axes of a weight: [out, in, k...] with channels first, [k..., in, out] with channels last;
// a transposed convolution has [in, out, k...] and [k..., in, out].
struct Weight {
  const Layout& layout;
  bool transposed;

  size_t in_axis() const { return layout.channels_last ? layout.spatial : (transposed ? 0 : 1); }
  size_t out_axis() const {
    return layout.channels_last ? layout.spatial + 1 : (transposed ? 1 : 0);
  }
  std::vector<Dim> kernel(const std::vector<Dim>& dims) const {
    auto begin = dims.begin() + (layout.channels_last ? 0 : 2);
    return std::vector<Dim>(begin, begin + static_cast<std::ptrdiff_t>(layout.spatial));
  }
  Indices index(const Scalar& in, const Scalar& out, const Indices& k) const {
    Indices at(layout.spatial + 2);
    at[in_axis()] = in;
    at[out_axis()] = out;
    for (size_t i = 0; i < k.size(); ++i) at[(layout.channels_last ? 0 : 2) + i] = k[i];
    return at;
  }
};

int64_t groups_of(const InferContext& cx) {
  int64_t groups = cx.attr_int("groups");
  if (groups < 1) cx.fail(cat("'groups' is ", groups, ", expected at least 1"));
  return groups;
}

void require_operands(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  require_same_dtype(cx, 1, 0);
  require_rank(cx, 1, x.rank);
  if (cx.has(2)) {
    require_same_dtype(cx, 2, 0);
    require_rank(cx, 2, 1);
  }
}

// The channel with index `c` within `group`, which has `per_group` of all `channels`.
Scalar channel_of(const Scalar& group, const Scalar& c, const Dim& per_group, int64_t groups,
                  const Dim& channels) {
  Scalar channel = groups == 1 ? c : per_group.is_const(1) ? group : group * size(per_group) + c;
  return within(channel, per_group * groups, channels);
}

// The group of channel `m` of `channels`. Clamped to the last group, since a hostile caller may
// pass a number of channels that the groups don't divide, which inference refuses.
Scalar group_of(const Scalar& m, const Dim& channels, int64_t groups) {
  if (groups == 1) return index(0);
  Dim per_group = floordiv(channels, groups);
  Scalar group = per_group.is_const(1) ? m : floor_div(m, size(per_group));
  return proves_equal(per_group * groups, channels) ? group : min_of(group, index(groups - 1));
}

// What both operators sum over: the kernel's places and the channels, which come innermost where
// they are contiguous.
std::vector<Dim> summed_extents(const Layout& layout, std::vector<Dim> kernel,
                                const Dim& channels) {
  kernel.insert(layout.channels_last ? kernel.end() : kernel.begin(), channels);
  return kernel;
}
// The channel and the kernel's place that such indices name.
std::pair<Scalar, Indices> channel_and_entry(const Layout& layout, const Indices& r) {
  if (layout.channels_last) return {r.back(), Indices(r.begin(), r.end() - 1)};
  return {r.front(), Indices(r.begin() + 1, r.end())};
}

// The stage that sums products into `y`; zeros of padding may be left out.
StageRef sum_of_products(const BufferRef& y, const std::vector<Dim>& extents,
                         const std::function<Scalar(const Indices&, const Indices&)>& body,
                         bool winograd = false) {
  auto products = make<loop::Stage>(*loop::reduce_stage(y, loop::Reduction::kSum, extents, body));
  products->padding_is_skippable = true;
  products->may_use_winograd = winograd;
  return products;
}

// Where the products are summed: the result, or what becomes it by add_bias.
BufferRef sum_of(const LowerContext& cx) {
  const BufferRef& y = cx.output();
  return cx.info().has(2) ? loop::buffer("sum", wide(y->dtype), dims_of(y)) : y;
}

// Adds the stage that adds the bias, if any, and converts to the result's dtype.
void add_bias(const LowerContext& cx, const BufferRef& sum, std::vector<StageRef>* stages) {
  if (!cx.info().has(2)) return;
  const BufferRef& y = cx.output();
  const size_t channel = layout_of(cx.info()).channel_axis();
  stages->push_back(map_stage(y, [&](const Indices& i) {
    Scalar bias = load_within(cx.input(2), {i[channel]}, {y->shape[channel]});
    return as(y->dtype, load(sum, i) + as(sum->dtype, bias));
  }));
}

// ---- conv ----

TypeRef infer_windows(InferContext& cx, DataType result) {
  const TensorType &x = cx.tensor(0), &w = cx.tensor(1);
  Layout layout = layout_of(cx);
  Weight weight{layout, false};
  int64_t groups = groups_of(cx);
  const Dim& out = w.dims[weight.out_axis()];
  cx.require_equal(x.dims[layout.channel_axis()], w.dims[weight.in_axis()] * groups,
                   "channels of 'x' and of 'w' times 'groups'");
  if (groups > 1) {
    cx.require_equal(mod(out, groups), 0, "output channels of 'w' modulo 'groups'");
  }
  std::vector<Window> windows = windows_of(cx, layout, weight.kernel(dims_of(w)));
  require_windows_fit(cx, windows);
  std::vector<Dim> places;
  places.reserve(windows.size());
  for (const Window& window : windows) places.push_back(window.count(false));
  return tensor_type(result, layout.join(x.dims[0], out, places));
}

TypeRef infer_conv(InferContext& cx) {
  require_operands(cx);
  if (cx.has(2)) {
    const Dim& out = cx.tensor(1).dims[Weight{layout_of(cx), false}.out_axis()];
    cx.require_equal(cx.tensor(2).dims[0], out, "size of 'bias' and output channels of 'w'");
  }
  return infer_windows(cx, cx.tensor(0).dtype);
}

// What both kinds of convolution multiply: an element of x, and one of w for an output channel.
struct Factors {
  Scalar padding;  // instead of an element outside x
  std::function<Scalar(const Scalar& x)> x;
  std::function<Scalar(const Scalar& w, const Scalar& channel)> w;
};

// The stages that end with the sum of products `y`.
std::vector<StageRef> sums_of_products(const LowerContext& cx, const BufferRef& y,
                                       const Factors& factors, bool winograd = false) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &w = cx.input(1);
  Layout layout = layout_of(info);
  Weight weight{layout, false};
  int64_t groups = groups_of(info);
  std::vector<Dim> kernel = weight.kernel(dims_of(w));
  std::vector<Window> windows = windows_of(info, layout, kernel);
  std::vector<StageRef> stages;
  BufferRef source = padded(x, layout, windows, false, factors.padding, &stages);

  const Dim& per_group = w->shape[weight.in_axis()];
  std::vector<Dim> extents = summed_extents(layout, kernel, per_group);
  auto body = [&](const Indices& i, const Indices& r) {
    const auto [c, k] = channel_and_entry(layout, r);
    const Scalar& m = i[layout.channel_axis()];
    Indices o = layout.places(i), places;
    for (size_t s = 0; s < k.size(); ++s) {
      places.push_back(padded_place(windows[s], false, o[s], k[s]));
    }
    Scalar channel = channel_of(group_of(m, y->shape[layout.channel_axis()], groups), c, per_group,
                                groups, x->shape[layout.channel_axis()]);
    return factors.x(load(source, layout.join(i[0], channel, places))) *
           factors.w(load(w, weight.index(c, m, k)), m);
  };
  stages.push_back(sum_of_products(y, extents, body, winograd));
  return stages;
}

loop::ComputeRef lower_conv(const LowerContext& cx) {
  const DataType dtype = wide(cx.output()->dtype);
  const auto factor = [&](const Scalar& e, auto&&...) { return as(dtype, e); };
  const BufferRef sum = sum_of(cx);
  std::vector<StageRef> stages = sums_of_products(
      cx, sum, {number(cx.input(0)->dtype, 0), factor, factor}, cx.info().attr_bool("winograd"));
  add_bias(cx, sum, &stages);
  return cx.compute(stages);
}

// ---- conv_integer ----

TypeRef infer_conv_integer(InferContext& cx) {
  require_rank(cx, 1, cx.tensor(0).rank);
  for (size_t operand : {0, 1}) {
    if (cx.has(operand + 2)) require_same_dtype(cx, operand + 2, operand);
  }
  if (cx.has(2)) require_one_element(cx, 2);
  if (cx.has(3) && !has_one_element(cx.tensor(3).dims)) {
    require_rank(cx, 3, 1);
    const Dim& out = cx.tensor(1).dims[Weight{layout_of(cx), false}.out_axis()];
    cx.require_equal(cx.tensor(3).dims[0], out, "size of 'w_zero' and output channels of 'w'");
  }
  return infer_windows(cx, i32);
}

loop::ComputeRef lower_conv_integer(const LowerContext& cx) {
  const BufferRef& y = cx.output();
  const Dim& channels = y->shape[layout_of(cx.info()).channel_axis()];
  const bool per_channel = cx.info().has(3) && !has_one_element(cx.input(3)->shape);
  const bool has_zero = cx.info().has(2);
  const Scalar padding = has_zero ? only_element(cx.input(2)) : number(cx.input(0)->dtype, 0);
  return cx.compute(sums_of_products(
      cx, y,
      {padding, [&](const Scalar& e) { return centred(cx, e, 2); },
       [&](const Scalar& e, const Scalar& channel) {
         if (!per_channel) return centred(cx, e, 3);
         return as(i32, e) - as(i32, load_within(cx.input(3), {channel}, {channels}));
       }}));
}

// ---- conv_transpose ----

// Element t of x contributes to places t * stride - before + k * dilation of the result.
TypeRef infer_conv_transpose(InferContext& cx) {
  require_operands(cx);
  const TensorType &x = cx.tensor(0), &w = cx.tensor(1);
  Layout layout = layout_of(cx);
  Weight weight{layout, true};
  int64_t groups = groups_of(cx);
  const Dim &in = w.dims[weight.in_axis()], &channels = x.dims[layout.channel_axis()];
  Dim out = w.dims[weight.out_axis()] * groups;
  cx.require_equal(channels, in, "channels of 'x' and input channels of 'w'");
  if (groups > 1) {
    cx.require_equal(mod(channels, groups), 0, "channels of 'x' modulo 'groups'");
  }
  if (cx.has(2)) {
    cx.require_equal(cx.tensor(2).dims[0], out, "size of 'bias' and output channels");
  }
  std::vector<Window> windows = windows_of(cx, layout, weight.kernel(dims_of(w)));
  std::vector<int64_t> extra =
      per_axis(cx, "output_padding", static_cast<int64_t>(layout.spatial), 0);
  std::vector<Dim> places;
  for (size_t k = 0; k < windows.size(); ++k) {
    const Window& v = windows[k];
    if (extra[k] < 0) cx.fail(cat("'output_padding' holds ", extra[k], ", expected at least 0"));
    Dim places_made = (v.extent - 1) * v.stride + v.reach() + extra[k] - v.before - v.after;
    cx.require_less_equal(0, places_made, cat("size of spatial axis ", k, " of the result"));
    places.push_back(places_made);
  }
  return tensor_type(x.dtype, layout.join(x.dims[0], out, places));
}

loop::ComputeRef lower_conv_transpose(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &w = cx.input(1), &y = cx.output();
  Layout layout = layout_of(info);
  Weight weight{layout, true};
  int64_t groups = groups_of(info);
  DataType dtype = wide(y->dtype);
  std::vector<Dim> kernel = weight.kernel(dims_of(w));
  std::vector<Window> windows = windows_of(info, layout, kernel);
  const Dim &channels = x->shape[layout.channel_axis()], &out = w->shape[weight.out_axis()];
  Dim per_group = groups == 1 ? channels : floordiv(channels, groups);
  std::vector<Dim> extents = summed_extents(layout, kernel, per_group);
  auto body = [&](const Indices& i, const Indices& r) {
    const auto [c, k] = channel_and_entry(layout, r);
    const Scalar& m = i[layout.channel_axis()];
    Indices o = layout.places(i), places;
    Scalar hit;
    for (size_t s = 0; s < k.size(); ++s) {
      const Window& v = windows[s];
      Scalar reached = o[s] + size(v.before) - k[s] * index(v.dilation);
      Scalar place = v.stride == 1 ? reached : floor_div(reached, index(v.stride));
      Scalar own = in_range(place, v.extent);
      if (v.stride != 1) own = both(own, eq(modulo(reached, index(v.stride)), index(0)));
      hit = hit ? both(hit, own) : own;
      places.push_back(place);
    }
    Scalar group = groups == 1 ? index(0) : out.is_const(1) ? m : floor_div(m, size(out));
    Scalar part = groups == 1 ? m : out.is_const(1) ? index(0) : modulo(m, size(out));
    Scalar channel = channel_of(group, c, per_group, groups, channels);
    Scalar term =
        as(dtype, load(x, layout.join(i[0], channel, places))) *
        as(dtype,
           load(w, weight.index(within(channel, channels, w->shape[weight.in_axis()]), part, k)));
    return select(hit, term, number(dtype, 0));
  };
  const BufferRef sum = sum_of(cx);
  std::vector<StageRef> stages = {sum_of_products(sum, extents, body)};
  add_bias(cx, sum, &stages);
  return cx.compute(stages);
}

// ---- samples ----

Sample sample_convolution(const Operator& op, uint64_t seed, bool transposed) {
  Random random(seed);
  const bool integers = op.operands[0].dtypes == kBytes;
  size_t spatial = static_cast<size_t>(random.between(1, 3));
  bool last = random.coin();
  int64_t groups = random.between(1, 2), in = random.between(1, 2), out = random.between(1, 2);
  Layout layout{spatial, last};
  std::vector<int64_t> places, kernel, strides, dilations, pads(2 * spatial), extra;
  for (size_t i = 0; i < spatial; ++i) {
    kernel.push_back(random.between(1, 3));
    strides.push_back(random.between(1, 2));
    dilations.push_back(random.between(1, 2));
    places.push_back((kernel[i] - 1) * dilations[i] + 1 + random.between(0, 3));
    pads[i] = random.between(0, transposed ? 0 : 2);
    pads[spatial + i] = random.between(0, transposed ? 0 : 2);
    extra.push_back(random.between(0, strides[i] - 1));
  }
  int64_t w_in = transposed ? in * groups : in, w_out = transposed ? out : out * groups;
  std::vector<int64_t> w = kernel;
  if (last) {
    w.insert(w.end(), {w_in, w_out});
  } else {
    w.insert(w.begin(), {transposed ? w_in : w_out, transposed ? w_out : w_in});
  }
  DataType dtype = random.dtype(op.operands[0].dtypes);
  const auto per_channel = [&](DataType t) { return sample_tensor(t, {out * groups}); };
  std::vector<TypeRef> operands = {
      sample_tensor(dtype, layout.join(random.between(1, 2), in * groups, places))};
  if (integers) {
    const DataType weights = random.dtype(kBytes);
    operands.insert(
        operands.end(),
        {sample_tensor(weights, w), random.coin() ? sample_tensor(dtype, {}) : unit_type(),
         random.pick<TypeRef>({unit_type(), sample_tensor(weights, {}), per_channel(weights)})});
  } else {
    operands.insert(operands.end(),
                    {sample_tensor(dtype, w), random.coin() ? per_channel(dtype) : unit_type()});
  }
  Sample s{operands, attrs({{"strides", attr_ints(strides)},
                            {"pads", attr_dims(to_dims(pads))},
                            {"dilations", attr_ints(dilations)},
                            {"groups", groups},
                            {"layout", String(last ? kChannelsLast : kChannelsFirst)}})};
  if (transposed) s.attrs.set("output_padding", attr_ints(extra));
  return s;
}

Sample sample_conv(const Operator& op, uint64_t seed) {
  return sample_convolution(op, seed, false);
}
Sample sample_conv_transpose(const Operator& op, uint64_t seed) {
  return sample_convolution(op, seed, true);
}

}  // namespace

void register_conv(OperatorTable& table) {
  AttrSpec groups = {"groups", AttrKind::kInt, "1", "of channels that don't mix"};
  table.add(
      {.name = "conv",
       .kind = OpKind::kContraction,
       .operands = {{"x", kNumbers}, {"w", kNumbers}, {"bias", kNumbers, OperandSpec::kOptional}},
       .attrs = {strides_attr(),
                 pads_attr(),
                 dilations_attr(),
                 groups,
                 layout_attr(),
                 {"winograd", AttrKind::kBool, "false",
                  "whether Winograd's algorithm may compute it, as `allow_winograd` sets it"}},
       .summary = "convolution; w is [M, C/groups, k...], or [k..., C/groups, M] for NHWC",
       .infer = infer_conv,
       .lower = lower_conv,
       .sample = sample_conv,
       .layout = LayoutRule::kImage});
  table.add({.name = "conv_integer",
             .kind = OpKind::kContraction,
             .operands = {{"x", kBytes},
                          {"w", kBytes},
                          {"x_zero", kBytes, OperandSpec::kOptional},
                          {"w_zero", kBytes, OperandSpec::kOptional}},
             .attrs = {strides_attr(), pads_attr(), dilations_attr(), groups, layout_attr()},
             .summary = "conv of x - x_zero and w - w_zero in i32; w_zero is one number or one per "
                        "output channel",
             .infer = infer_conv_integer,
             .lower = lower_conv_integer,
             .sample = sample_conv,
             .layout = LayoutRule::kImage});
  table.add(
      {.name = "conv_transpose",
       .kind = OpKind::kContraction,
       .operands = {{"x", kNumbers}, {"w", kNumbers}, {"bias", kNumbers, OperandSpec::kOptional}},
       .attrs = {strides_attr(),
                 pads_attr(),
                 dilations_attr(),
                 groups,
                 {"output_padding", AttrKind::kInts, "[]",
                  "added to the end of each spatial axis; empty: 0"},
                 layout_attr()},
       .summary = "transposed convolution; w is [C, M/groups, k...], or [k..., C, M/groups] "
                  "for NHWC",
       .infer = infer_conv_transpose,
       .lower = lower_conv_transpose,
       .sample = sample_conv_transpose});
}

}  // namespace tenon::graph
