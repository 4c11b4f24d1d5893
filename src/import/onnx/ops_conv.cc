// Convolutions.

#include "import/onnx/window.h"

namespace tenon::onnx {

namespace {

using graph::attr_ints;

Dims spatial_sizes(NodeContext& cx, const Operand& x) {
  Dims dims = cx.dims(x);
  if (dims.size() < 3)
    cx.invalid(cat("an operand of rank ", dims.size()),
               "3 or more: batch, channels and at least one spatial axis");
  if (dims.size() > 5) cx.unsupported(cat("rank ", dims.size(), " not implemented"));
  return Dims(dims.begin() + 2, dims.end());
}

int64_t groups_of(NodeContext& cx) {
  int64_t groups = cx.attr_int("group", 1);
  if (groups <= 0) cx.invalid(cat("group=", groups), "1 or more");
  return groups;
}

// A convolution of the first two operands.
Operand convolve(NodeContext& cx, const char* name, const Operands& operands) {
  Window window = read_window(cx, conv_kernel(cx, operands[1]), spatial_sizes(cx, operands[0]));
  graph::Attrs attrs = window.attrs();
  attrs.set("groups", Any(groups_of(cx)));
  return cx.op(name, operands, attrs);
}

Operands conv(NodeContext& cx) {
  return {convolve(cx, "conv", {cx.in(0), cx.in(1), cx.opt(2)})};
}

Operands conv_integer(NodeContext& cx) {
  return {convolve(cx, "conv_integer", {cx.in(0), cx.in(1), cx.opt(2), cx.opt(3)})};
}

// A parameter per output channel, or for all, in a shape that broadcasts to the result.
Operand per_channel(NodeContext& cx, const Operand& p, const Operand& result) {
  if (cx.rank(p) != 1 || cx.dims(p)[0].is_const(1)) return cx.reshape(p, {});
  Dims shape(static_cast<size_t>(cx.rank(result)), Dim(1));
  shape[1] = cx.dims(p)[0];
  return cx.reshape(p, shape);
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias
Operands qlinear_conv(NodeContext& cx) {
  Operand sum = convolve(cx, "conv_integer", {cx.in(0), cx.in(3), cx.in(2), cx.in(5)});
  if (cx.has(8)) sum = cx.add(sum, per_channel(cx, cx.in(8), sum));
  const Operand scale = cx.div(cx.mul(cx.reshape(cx.in(1), {}), per_channel(cx, cx.in(4), sum)),
                               cx.reshape(cx.in(6), {}));
  Operand y = cx.op("round", {cx.mul(cx.cast(sum, f32), scale)});
  Operand zero = cx.reshape(cx.in(7), {});
  return {cx.cast(cx.add(y, cx.cast(zero, f32)), cx.dtype(7))};
}

// The result's size is stride (in - 1) + output_padding + reach - pads; if output_shape gives the
// size, the pads follow from it.
Operands conv_transpose(NodeContext& cx) {
  Operand x = cx.in(0), w = cx.in(1);
  Dims spatial = spatial_sizes(cx, x);
  size_t rank = spatial.size();
  Dims kernel = conv_kernel(cx, w);
  std::string how = cx.attr_string("auto_pad", "NOTSET");
  Ints extra = cx.attr_ints("output_padding", Ints(rank, 0));
  Ints wanted = cx.attr_ints("output_shape");
  if (extra.empty()) extra.assign(rank, 0);
  if (extra.size() != rank)
    cx.invalid(cat("output_padding has ", extra.size(), " entries"),
               cat(rank, ", one for each spatial axis"));
  // Some exporters include batch and channels.
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank)
    cx.invalid(cat("output_shape has ", wanted.size(), " entries"),
               cat(rank, ", one for each spatial axis"));
  Window window = read_window(cx, kernel, spatial);
  bool same = how == "SAME_UPPER" || how == "SAME_LOWER";
  if (same || !wanted.empty()) {
    for (size_t i = 0; i < rank; ++i) {
      Dim size = wanted.empty() ? spatial[i] * window.strides[i] : Dim(wanted[i]);
      Dim total = (spatial[i] - 1) * window.strides[i] + extra[i] +
                  (kernel[i] - 1) * window.dilations[i] + 1 - size;
      // A smaller result needs pads, a larger one output_padding.
      if (auto t = total.as_const(); t && *t < 0) {
        extra[i] -= *t;
        total = 0;
      }
      Dim half = floordiv(total, 2);
      window.pads[i] = how == "SAME_UPPER" ? half : total - half;
      window.pads[rank + i] = total - window.pads[i];
    }
  }
  graph::Attrs attrs = window.attrs();
  attrs.set("groups", Any(groups_of(cx)));
  attrs.set("output_padding", attr_ints(extra));
  return {cx.op("conv_transpose", {x, w, cx.opt(2)}, attrs)};
}

// Columns [N, C * block, L] to an image [N, C, ...].
Operands col2im(NodeContext& cx) {
  if (cx.rank(0) != 3) cx.invalid(cat("an operand of rank ", cx.rank(0)), "3");
  const Operand sizes = cx.in(1), blocks = cx.in(2);
  const auto length_of = [&](const Operand& x) { return cx.dims(x).at(0).as_const().value_or(0); };
  const auto axes = static_cast<size_t>(std::max(length_of(sizes), length_of(blocks)));
  const Dims image = cx.elements(sizes, axes), block = cx.elements(blocks, axes);
  if (image.empty()) cx.invalid("an empty image_shape", "one size for each spatial axis");
  if (block.size() != image.size())
    cx.invalid(cat("a block_shape of ", block.size(), " sizes"),
               cat(image.size(), ", one for each spatial axis"));
  graph::Attrs attrs = read_window(cx, Dims(image.size(), 1), image).attrs();
  attrs.set("image", graph::attr_dims(image));
  attrs.set("kernel", graph::attr_dims(block));
  return {cx.op("col2im", {cx.in(0)}, attrs)};
}

// A product of the weights and the moved windows, by group of channels.
Operands deform_conv(NodeContext& cx) {
  const Operand x = cx.in(0), w = cx.in(1);
  const Dims spatial = spatial_sizes(cx, x), weights = cx.dims(w);
  const Dims kernel = conv_kernel(cx, w);
  const int64_t groups = groups_of(cx), moving = cx.attr_int("offset_group", 1);
  if (moving <= 0) cx.invalid(cat("offset_group=", moving), "1 or more");
  graph::Attrs attrs = read_window(cx, kernel, spatial).attrs();
  attrs.set("kernel", graph::attr_dims(kernel));
  attrs.set("offset_groups", Any(moving));
  const Operand columns = cx.op("deform_columns", {x, cx.in(2), cx.opt(4)}, attrs);
  const Dims shape = cx.dims(columns);
  const Dim windows = product(Dims(shape.begin() + 3, shape.end())),
            entries = weights[1] * shape[2];
  cx.b.check(graph::CheckKind::kEqual, shape[1], weights[1] * groups,
             "channels of x and of the weights times groups");
  const Dim each = floordiv(weights[0], groups);
  const Operand rows = cx.reshape(w, {1, groups, each, entries});
  const Operand y =
      cx.op("matmul", {rows, cx.reshape(columns, {shape[0], groups, entries, windows})});
  Dims result(shape.begin() + 3, shape.end());
  result.insert(result.begin(), {shape[0], weights[0]});
  const Operand image = cx.reshape(y, result);
  if (!cx.has(3)) return {image};
  Dims channels(result.size(), Dim(1));
  channels[1] = weights[0];
  return {cx.add(image, cx.reshape(cx.in(3), channels))};
}

}  // namespace

void register_conv(OpTable& t) {
  t.add("Conv", 1, conv);
  t.add("ConvInteger", 10, conv_integer);
  t.add("QLinearConv", 10, qlinear_conv);
  t.add("ConvTranspose", 1, conv_transpose);
  t.add("Col2Im", 18, with_booleans<col2im>);
  t.add("DeformConv", 19, widened<deform_conv>);
}

}  // namespace tenon::onnx
