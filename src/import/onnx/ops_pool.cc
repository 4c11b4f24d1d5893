// Pooling.

#include <limits>

#include "import/onnx/window.h"
#include "object/reflect.h"

namespace tenon::onnx {

namespace {

Window pool_window(NodeContext& cx, const Operand& x) {
  Dims dims = cx.dims(x);
  if (dims.size() < 3)
    cx.invalid(cat("an operand of rank ", dims.size()),
               "3 or more: batch, channels and at least one spatial axis");
  if (dims.size() > 5) cx.unsupported(cat("rank ", dims.size(), " not implemented"));
  return read_window(cx, pool_kernel(cx), Dims(dims.begin() + 2, dims.end()));
}

graph::Attrs pool_attrs(NodeContext& cx, const Window& w) {
  graph::Attrs attrs = w.attrs();
  attrs.set("kernel", graph::attr_ints(cx.attr_ints("kernel_shape")));
  attrs.set("ceil_mode", Any(cx.attr_bool("ceil_mode", false)));
  return attrs;
}

Operands max_pool(NodeContext& cx) {
  Operand x = cx.in(0);
  graph::Attrs attrs = pool_attrs(cx, pool_window(cx, x));
  bool column_major = cx.attr_bool("storage_order", false);
  if (!cx.wants(1)) return {cx.op("max_pool", {x}, attrs)};
  attrs.set("indices", Any(true));
  attrs.set("column_major", Any(column_major));
  return cx.b.ops("max_pool", {x}, attrs);
}

Operands average_pool(NodeContext& cx) {
  Operand x = cx.in(0);
  graph::Attrs attrs = pool_attrs(cx, pool_window(cx, x));
  attrs.set("count_include_pad", Any(cx.attr_bool("count_include_pad", false)));
  return {cx.op("avg_pool", {x}, attrs)};
}

// (sum |x|^p)^(1/p)
Operands lp_pool(NodeContext& cx) {
  Operand x = cx.in(0);
  graph::Attrs attrs = pool_attrs(cx, pool_window(cx, x));
  double p = cx.version() >= 2 ? static_cast<double>(cx.attr_int("p", 2)) : cx.attr_float("p", 2);
  if (p <= 0) cx.invalid(cat("p=", p), "a positive number");
  Operand powers = p == 1   ? cx.op("abs", {x})
                   : p == 2 ? cx.mul(x, x)
                            : cx.op("pow", {cx.op("abs", {x}), cx.scalar_like(x, p)});
  Operand sum = cx.op("sum_pool", {powers}, attrs);
  if (p == 1) return {sum};
  return {p == 2 ? cx.op("sqrt", {sum}) : cx.op("pow", {sum, cx.scalar_like(x, 1 / p)})};
}

// Puts the elements at their indices in the flattened result, which is 0 elsewhere. Its size is
// that of the operand that MaxPool had, or given.
Operands max_unpool(NodeContext& cx) {
  const Operand x = cx.in(0);
  const Dims dims = cx.dims(x);
  if (dims.size() < 3)
    cx.invalid(cat("an operand of rank ", dims.size()),
               "3 or more: batch, channels and at least one spatial axis");
  const Dims spatial(dims.begin() + 2, dims.end());
  const Window w = read_window(cx, pool_kernel(cx), spatial);
  Dims result = dims;
  if (cx.has(2)) {
    result = cx.elements(cx.in(2), dims.size());
    if (result.size() != dims.size())
      cx.invalid(cat("an output_shape of ", result.size(), " sizes"),
                 cat(dims.size(), ", one for each axis"));
  } else {
    for (size_t i = 0; i < spatial.size(); ++i) {
      const Dim size =
          (spatial[i] - 1) * w.strides[i] + w.kernel[i] - w.pads[i] - w.pads[spatial.size() + i];
      cx.b.check(graph::CheckKind::kLessEqual, 0, size, cat("size of spatial axis ", i));
      result[2 + i] = size;
    }
  }
  const Dim count = product(dims);
  const Operand zeros = cx.full(cx.dtype(x), 0, {product(result)});
  const Operand flat =
      cx.op("scatter_elements", {zeros, cx.reshape(cx.in(1), {count}), cx.reshape(x, {count})},
            graph::attrs({{"axis", 0}}));
  return {cx.reshape(flat, result)};
}

// The nearest integer, halves away from 0.
Operand rounded(NodeContext& cx, const Operand& x) {
  const Operand half = cx.scalar_like(x, 0.5), zero = cx.scalar_like(x, 0);
  return cx.op("where", {cx.op("less", {x, zero}), cx.op("ceil", {cx.sub(x, half)}),
                         cx.op("floor", {cx.add(x, half)})});
}

// Which of `size` places along an axis each of `bins` parts of the regions has: bool[R, bins,
// size].
Operand bin_mask(NodeContext& cx, const Operand& first, const Operand& last, int64_t bins,
                 const Dim& size) {
  auto number = [&](double v) { return cx.scalar_like(first, v); };
  auto counting = [&](const Dim& count) {
    const Operand all =
        cx.op("range", {cx.integer(0), cx.integer(1)}, graph::attrs({{"count", count}}));
    return cx.cast(all, cx.dtype(first));
  };
  const Operand start = cx.unsqueeze(rounded(cx, first), {1}),  // [R, 1]
      end = cx.unsqueeze(rounded(cx, last), {1});
  const Operand length = cx.op("maximum", {cx.add(cx.sub(end, start), number(1)), number(1)});
  const Operand step = cx.div(length, number(static_cast<double>(bins)));
  const Operand bin = counting(bins);  // [bins]
  const Operand from = cx.add(start, cx.op("floor", {cx.mul(bin, step)})),
                to = cx.add(start, cx.op("ceil", {cx.mul(cx.add(bin, number(1)), step)}));
  const Operand place = counting(size);
  return cx.op("logical_and", {cx.op("less_equal", {cx.unsqueeze(from, {2}), place}),
                               cx.op("less", {place, cx.unsqueeze(to, {2})})});
}

// The greatest elements of each part of regions (image, x1, y1, x2, y2), 0 of an empty part; first
// along the rows, then along the columns.
Operands max_roi_pool(NodeContext& cx) {
  const Operand x = cx.in(0), regions = cx.in(1);
  if (cx.rank(x) != 4) cx.invalid(cat("X of rank ", cx.rank(x)), "4: batch, channels, two axes");
  if (cx.rank(regions) != 2 || !cx.dims(regions)[1].is_const(5))
    cx.invalid("rois that aren't lists of 5", "[regions, 5]: image, x1, y1, x2, y2");
  const Ints bins = cx.attr_ints("pooled_shape");
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1)
    cx.invalid(cat("pooled_shape=", repr(graph::attr_ints(bins))), "two sizes of 1 or more");
  const Dims dims = cx.dims(x);
  auto column = [&](int64_t i) { return cx.squeeze(cx.slice(regions, 1, i, 1), {1}); };
  const Operand scale = cx.scalar_like(regions, cx.attr_float("spatial_scale", 1));
  auto corner = [&](int64_t i) { return cx.mul(column(i), scale); };
  const Operand rows = bin_mask(cx, corner(2), corner(4), bins[0], dims[2]),  // [R, P, H]
      columns = bin_mask(cx, corner(1), corner(3), bins[1], dims[3]);         // [R, Q, W]
  const Operand images = cx.op("gather", {x, cx.cast(column(0), i64)}, graph::attrs({{"axis", 0}}));
  const Operand lowest = cx.scalar_like(x, -std::numeric_limits<double>::infinity());
  auto greatest = [&](const Operand& mask, const Operand& values, int64_t axis) {
    return cx.reduce("reduce_max", cx.op("where", {mask, values, lowest}), {axis}, false);
  };
  const Operand by_row = greatest(cx.unsqueeze(rows, {1, 4}), cx.unsqueeze(images, {2}), 3);
  const Operand all = greatest(cx.unsqueeze(columns, {1, 2}), cx.unsqueeze(by_row, {3}), 4);
  auto some = [&](const Operand& mask) { return cx.reduce("reduce_or", mask, {2}, false); };
  const Operand filled =
      cx.op("logical_and", {cx.unsqueeze(some(rows), {1, 3}), cx.unsqueeze(some(columns), {1, 2})});
  return {cx.op("where", {filled, all, cx.scalar_like(x, 0)})};
}

}  // namespace

void register_pool(OpTable& t) {
  t.add("MaxPool", 1, max_pool);
  t.add("AveragePool", 1, average_pool);
  t.add("LpPool", 1, lp_pool);
  t.add("MaxRoiPool", 1, widened<max_roi_pool>);
  t.add("MaxUnpool", 9, max_unpool);
}

}  // namespace tenon::onnx
