// Pooling.

#include "import/onnx/window.h"

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
    result = cx.elements(cx.in(2));
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

}  // namespace

void register_pool(OpTable& t) {
  t.add("MaxPool", 1, max_pool);
  t.add("AveragePool", 1, average_pool);
  t.add("LpPool", 1, lp_pool);
  t.add("MaxUnpool", 9, max_unpool);
}

}  // namespace tenon::onnx
