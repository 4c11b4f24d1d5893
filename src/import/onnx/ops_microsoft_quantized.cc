// Operators of com.microsoft on 8-bit numbers. Weights of fewer bits are in
// ops_microsoft_weights.cc. docs: ContribOperators.md of ONNX Runtime.

#include <algorithm>

#include "import/onnx/activation.h"
#include "import/onnx/window.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// ---- functions of 8-bit numbers ----

// Scale and zero point of a whole tensor, which may be given as lists of one element.
Operand single(NodeContext& cx, size_t i) {
  return cx.has(i) ? cx.reshape(cx.in(i), {}) : Operand();
}

// Operand i as floats; its scale and zero point follow it.
Operand real(NodeContext& cx, size_t i) {
  return cx.op("dequantize_linear", {cx.in(i), single(cx, i + 1), single(cx, i + 2)});
}

// y in the given type; operand `scale` is its scale, and the next one its zero point.
Operand quantized(NodeContext& cx, const Operand& y, size_t scale, DataType dtype) {
  return cx.op("quantize_linear", {y, single(cx, scale), single(cx, scale + 1)},
               attrs({{"dtype", Any(dtype)}}));
}

// A function of one operand.
template <Operand (*Function)(NodeContext& cx, const Operand& x)>
Operands of_one(NodeContext& cx) {
  enum : size_t { kX, kXScale, kXZero, kYScale };
  return {quantized(cx, Function(cx, real(cx, kX)), kYScale, cx.dtype(kX))};
}

Operand sigmoid(NodeContext& cx, const Operand& x) {
  return cx.op("sigmoid", {x});
}

Operand leaky_relu(NodeContext& cx, const Operand& x) {
  return activation::leaky_relu(cx, x, cx.attr_float("alpha", 0.01));
}

// Before opset 13 of ONNX, Softmax is of all axes from `axis` on together.
Operand softmax(NodeContext& cx, const Operand& x) {
  const int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(x));
  if (cx.attr_int("opset") >= 13) return cx.op("softmax", {x}, attrs({{"axis", axis}}));
  const Dims d = cx.dims(x);
  const Dims before(d.begin(), d.begin() + axis), after(d.begin() + axis, d.end());
  const Operand rows = cx.reshape(x, {product(before), product(after)});
  return cx.reshape(cx.op("softmax", {rows}, attrs({{"axis", 1}})), d);
}

struct Layout {
  const char* name;
  int64_t first;  // of the spatial axes
  Dims spatial;
};

Layout layout_of(NodeContext& cx, const Operand& x) {
  const Dims d = cx.dims(x);
  if (d.size() < 3 || d.size() > 5) cx.invalid(cat("X of rank ", d.size()), "3 to 5");
  if (cx.attr_bool("channels_last", false)) return {"NHWC", 1, Dims(d.begin() + 1, d.end() - 1)};
  return {"NCHW", 2, Dims(d.begin() + 2, d.end())};
}

Operand average_pool(NodeContext& cx, const Operand& x) {
  const Layout layout = layout_of(cx, x);
  const Window window = read_window(cx, pool_kernel(cx), layout.spatial);
  graph::Attrs attributes = window.attrs();
  attributes.set("kernel", graph::attr_ints(cx.attr_ints("kernel_shape")));
  attributes.set("ceil_mode", Any(cx.attr_bool("ceil_mode", false)));
  attributes.set("count_include_pad", Any(cx.attr_bool("count_include_pad", false)));
  attributes.set("layout", Any(String(layout.name)));
  return cx.op("avg_pool", {x}, attributes);
}

Operand global_average_pool(NodeContext& cx, const Operand& x) {
  const Layout layout = layout_of(cx, x);
  Ints axes;
  for (size_t i = 0; i < layout.spatial.size(); ++i) {
    axes.push_back(layout.first + static_cast<int64_t>(i));
  }
  return cx.reduce("reduce_mean", x, axes, true);
}

Operand reduce_mean(NodeContext& cx, const Operand& x) {
  return cx.reduce("reduce_mean", x, cx.axes(cx.attr_ints("axes"), cx.rank(x)),
                   cx.attr_bool("keepdims", true));
}

// After y's scale and zero point come three operands for each part: itself, its scale and zero
// point.
Operands concat(NodeContext& cx) {
  enum : size_t { kYScale, kYZero, kFirstPart };
  constexpr size_t kOfAPart = 3;
  if (cx.count() < kFirstPart + kOfAPart || (cx.count() - kFirstPart) % kOfAPart != 0)
    cx.invalid(cat(cx.count(), " operands"), "2, and 3 for each part");
  Operands parts;
  for (size_t i = kFirstPart; i < cx.count(); i += kOfAPart) parts.push_back(real(cx, i));
  const int64_t axis = cx.axis(cx.attr_int("axis"), cx.rank(parts[0]));
  return {quantized(cx, cx.concat(parts, axis), kYScale, cx.dtype(kFirstPart))};
}

Operands where(NodeContext& cx) {
  enum : size_t { kCondition, kX, kXScale, kXZero, kY, kYScale, kYZero, kZScale };
  const Operand z = cx.op("where", {cx.in(kCondition), real(cx, kX), real(cx, kY)});
  return {quantized(cx, z, kZScale, cx.dtype(kX))};
}

// ---- products ----

// ONNX's operator, perhaps with channels as the last axis of x and y.
Operands conv(NodeContext& cx) {
  if (!cx.attr_bool("channels_last", false)) return cx.as_onnx("QLinearConv", cx.all());
  const int64_t last = cx.rank(0) - 1;
  if (last < 2) cx.invalid(cat("x of rank ", last + 1), "3 or more");
  Ints front = NodeContext::axes_below(last + 1), back = front;
  std::rotate(front.begin() + 1, front.end() - 1, front.end());
  std::rotate(back.begin() + 1, back.begin() + 2, back.end());
  Operands operands = cx.all();
  operands[0] = cx.transpose(cx.in(0), front);
  return {cx.transpose(cx.as_onnx("QLinearConv", operands).at(0), back)};
}

Operand matrix(NodeContext& cx, size_t i, const char* transposed) {
  if (cx.rank(i) != 2) cx.invalid(cat("operand ", i, " of rank ", cx.rank(i)), "a matrix");
  return cx.attr_bool(transposed, false) ? cx.transpose(cx.in(i), {1, 0}) : cx.in(i);
}

// Integers without y_scale are exact up to their scale; c has the scale of the product.
Operands gemm(NodeContext& cx) {
  enum : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };
  const Operand a = matrix(cx, kA, "transA"), b = matrix(cx, kB, "transB");
  Operand sum = cx.as_onnx("MatMulInteger", {a, b, cx.opt(kAZero), cx.opt(kBZero)}).at(0);
  if (cx.has(kC)) sum = cx.add(sum, cx.in(kC));
  Operand scale = cx.mul(cx.in(kAScale), cx.in(kBScale));
  if (const double alpha = cx.attr_float("alpha", 1); alpha != 1)
    scale = cx.mul(scale, cx.scalar_like(scale, alpha));
  const Operand y = cx.mul(cx.cast(sum, f32), scale);
  if (!cx.has(kYScale)) return {y};
  return {quantized(cx, y, kYScale, cx.dtype(cx.has(kYZero) ? kYZero : kA))};
}

}  // namespace

void register_microsoft_quantized(OpTable& t) {
  t.add("QLinearSigmoid", 1, of_one<sigmoid>, kMicrosoft);
  t.add("QLinearLeakyRelu", 1, of_one<leaky_relu>, kMicrosoft);
  t.add("QLinearSoftmax", 1, of_one<softmax>, kMicrosoft);
  t.add("QLinearAveragePool", 1, of_one<average_pool>, kMicrosoft);
  t.add("QLinearGlobalAveragePool", 1, of_one<global_average_pool>, kMicrosoft);
  t.add("QLinearReduceMean", 1, of_one<reduce_mean>, kMicrosoft);
  t.add("QLinearConcat", 1, concat, kMicrosoft);
  t.add("QLinearWhere", 1, where, kMicrosoft);
  t.add("QLinearConv", 1, conv, kMicrosoft);
  t.add("QGemm", 1, gemm, kMicrosoft);
}

}  // namespace tenon::onnx
