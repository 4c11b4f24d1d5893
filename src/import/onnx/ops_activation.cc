// Activations. Those without an operator of graph IR are composed from arithmetic.

#include <cmath>
#include <functional>

#include "import/onnx/activation.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

Operands relu(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {cx.op("relu", {cx.in(0)})};
}

Operands sigmoid(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {cx.op("sigmoid", {cx.in(0)})};
}

Operands tanh(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {cx.op("tanh", {cx.in(0)})};
}

Operands leaky_relu(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {activation::leaky_relu(cx, cx.in(0), cx.attr_float("alpha", 0.01))};
}

Operands prelu(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operand x = cx.in(0), slope = cx.in(1);
  // Before opset 7 the slope was one per channel.
  if (cx.version() < 7 && cx.rank(slope) == 1 && cx.rank(x) > 2 && !cx.dims(slope)[0].is_const(1)) {
    Dims shape(static_cast<size_t>(cx.rank(x) - 1), Dim(1));
    shape[0] = cx.dims(slope)[0];
    slope = cx.reshape(slope, shape);
  }
  return {cx.op("where", {cx.op("less", {x, cx.scalar_like(x, 0)}), cx.mul(x, slope), x})};
}

Operands elu(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {activation::elu(cx, cx.in(0), cx.attr_float("alpha", 1))};
}

Operands selu(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operand x = cx.in(0);
  bool old = cx.version() < 6;
  double alpha = cx.attr_float("alpha", old ? 1.6732 : 1.67326319217681884765625);
  double gamma = cx.attr_float("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return {cx.mul(activation::elu(cx, x, alpha), cx.scalar_like(x, gamma))};
}

Operands celu(NodeContext& cx) {
  Operand x = cx.in(0);
  Operand alpha = cx.scalar_like(x, cx.attr_float("alpha", 1));
  Operand negative = cx.mul(alpha, activation::expm1_negative(cx, cx.div(x, alpha)));
  return {cx.add(cx.op("maximum", {x, cx.scalar_like(x, 0)}),
                 cx.op("minimum", {negative, cx.scalar_like(x, 0)}))};
}

Operands softplus(NodeContext& cx) {
  return {activation::softplus(cx, cx.in(0))};
}

Operands softsign(NodeContext& cx) {
  return {activation::softsign(cx, cx.in(0))};
}

Operands hard_sigmoid(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  return {activation::hard_sigmoid(cx, cx.in(0), cx.attr_float("alpha", 0.2),
                                   cx.attr_float("beta", 0.5))};
}

Operands hard_swish(NodeContext& cx) {
  return {cx.mul(cx.in(0), activation::hard_sigmoid(cx, cx.in(0), 1.0 / 6, 0.5))};
}

// x tanh(log(1 + t)) = x n / (n + 2) for t = exp(x), n = t (t + 2); above 20 the quotient is 1.
Operands mish(NodeContext& cx) {
  const Operand x = cx.in(0), two = cx.scalar_like(x, 2);
  const Operand t = cx.op("exp", {cx.op("minimum", {x, cx.scalar_like(x, 20)})});
  const Operand n = cx.mul(t, cx.add(t, two));
  return {cx.mul(x, cx.div(n, cx.add(n, two)))};
}

Operands swish(NodeContext& cx) {
  Operand x = cx.in(0);
  double alpha = cx.attr_float("alpha", 1);
  Operand scaled = alpha == 1 ? x : cx.mul(x, cx.scalar_like(x, alpha));
  return {cx.mul(x, cx.op("sigmoid", {scaled}))};
}

// The operands have one shape: nothing is broadcast.
Operands swiglu(NodeContext& cx) {
  const Dims a = cx.dims(0), b = cx.dims(1);
  if (a.size() != b.size())
    cx.invalid(cat("operands of rank ", a.size(), " and ", b.size()), "one shape");
  for (size_t i = 0; i < a.size(); ++i) {
    cx.b.check(graph::CheckKind::kEqual, a[i], b[i], cat("size of A and B on axis ", i));
  }
  return {cx.mul(swish(cx)[0], cx.in(1))};
}

Operands gelu(NodeContext& cx) {
  std::string how = cx.attr_string("approximate", "none");
  if (how == "none") return {activation::gelu(cx, cx.in(0))};
  if (how == "tanh") return {activation::gelu_tanh(cx, cx.in(0))};
  cx.unsupported(cat("approximate=", how, " not implemented"));
}

Operands bias_gelu(NodeContext& cx) {
  return {activation::gelu(cx, cx.add(cx.in(0), cx.in(1)))};
}

Operands fast_gelu(NodeContext& cx) {
  return {activation::gelu_tanh(cx, cx.has(1) ? cx.add(cx.in(0), cx.in(1)) : cx.in(0))};
}

Operands quick_gelu(NodeContext& cx) {
  Operand x = cx.in(0);
  double alpha = cx.attr_float("alpha", 1.702);
  return {cx.mul(x, cx.op("sigmoid", {cx.mul(x, cx.scalar_like(x, alpha))}))};
}

Operands thresholded_relu(NodeContext& cx) {
  Operand x = cx.in(0);
  Operand alpha = cx.scalar_like(x, cx.attr_float("alpha", 1));
  return {cx.op("where", {cx.op("greater", {x, alpha}), x, cx.scalar_like(x, 0)})};
}

// x + bias below -lambd, x - bias above lambd, else 0. Integers are computed as floats.
Operands shrink(NodeContext& cx) {
  DataType dtype = cx.dtype(0);
  Operand x = dtype.is_float() ? cx.in(0) : cx.cast(cx.in(0), f64);
  double lambd = cx.attr_float("lambd", 0.5), bias = cx.attr_float("bias", 0);
  Operand above = cx.op("where", {cx.op("greater", {x, cx.scalar_like(x, lambd)}),
                                  cx.sub(x, cx.scalar_like(x, bias)), cx.scalar_like(x, 0)});
  Operand y = cx.op("where", {cx.op("less", {x, cx.scalar_like(x, -lambd)}),
                              cx.add(x, cx.scalar_like(x, bias)), above});
  return {cx.cast(y, dtype)};
}

// Before opset 13, the axes from `axis` on are flattened to one row; `rows` gets [before, after].
Operands rows_before_13(NodeContext& cx, const std::function<Operand(const Operand&)>& rows) {
  Operand x = cx.in(0);
  Dims shape = cx.dims(x);
  int64_t rank = cx.rank(x), axis = cx.attr_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) cx.invalid(cat("axis ", axis), cat("0 to ", rank));
  Dims head(shape.begin(), shape.begin() + axis), tail(shape.begin() + axis, shape.end());
  Operand flat = cx.reshape(x, {product(head), product(tail)});
  return {cx.reshape(rows(flat), shape)};
}

Operands rows_before_13(NodeContext& cx, const char* name) {
  return rows_before_13(cx, [&](const Operand& rows) {
    return cx.op(name, {rows}, attrs({{"axis", 1}}));
  });
}

Operands softmax_before_13(NodeContext& cx) {
  int64_t rank = cx.rank(0), axis = cx.attr_int("axis", 1);
  if (axis == rank - 1 || axis == -1) {
    return {cx.op("softmax", {cx.in(0)}, attrs({{"axis", -1}}))};
  }
  return rows_before_13(cx, "softmax");
}

Operands softmax(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  return {cx.op("softmax", {cx.in(0)}, attrs({{"axis", axis}}))};
}

Operands log_softmax_before_13(NodeContext& cx) {
  return rows_before_13(cx, "log_softmax");
}

Operands log_softmax(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  return {cx.op("log_softmax", {cx.in(0)}, attrs({{"axis", axis}}))};
}

// 1 at the first of the greatest elements along an axis, else 0.
Operand hardmax_along(NodeContext& cx, const Operand& x, int64_t axis) {
  Operand best = cx.op("argmax", {x}, attrs({{"axis", axis}, {"keepdims", false}}));
  Operand off_on = graph::constant(make_tensor(cx.dtype(x), {2}, {0, 1}));
  return cx.op(
      "one_hot", {best, off_on},
      attrs({{"depth", Any(cx.dims(x)[static_cast<size_t>(axis)].ref())}, {"axis", axis}}));
}

Operands hardmax_before_13(NodeContext& cx) {
  return rows_before_13(cx, [&](const Operand& rows) { return hardmax_along(cx, rows, 1); });
}

Operands hardmax(NodeContext& cx) {
  return {hardmax_along(cx, cx.in(0), cx.axis(cx.attr_int("axis", -1), cx.rank(0)))};
}

}  // namespace

void register_activation(OpTable& t) {
  t.add("Relu", 1, relu);
  t.add("Sigmoid", 1, sigmoid);
  t.add("Tanh", 1, tanh);
  t.add("LeakyRelu", 1, widened<leaky_relu>);
  t.add("PRelu", 1, prelu);
  t.add("Elu", 1, widened<elu>);
  t.add("Selu", 1, widened<selu>);
  t.add("Celu", 12, widened<celu>);
  t.add("Softplus", 1, widened<softplus>);
  t.add("Softsign", 1, widened<softsign>);
  t.add("HardSigmoid", 1, widened<hard_sigmoid>);
  t.add("HardSwish", 14, widened<hard_swish>);
  t.add("Mish", 18, widened<mish>);
  t.add("SwiGLU", 28, widened<swiglu>);
  t.add("Swish", 24, widened<swish>);
  t.add("Gelu", 20, widened<gelu>);
  t.add("Gelu", 1, widened<gelu>, kMicrosoft);
  t.add("BiasGelu", 1, widened<bias_gelu>, kMicrosoft);
  t.add("FastGelu", 1, widened<fast_gelu>, kMicrosoft);
  t.add("QuickGelu", 1, widened<quick_gelu>, kMicrosoft);
  t.add("ThresholdedRelu", 1, thresholded_relu);
  t.add("Shrink", 9, shrink);
  t.add("Softmax", 1, softmax_before_13);
  t.add("Softmax", 13, softmax);
  t.add("LogSoftmax", 1, log_softmax_before_13);
  t.add("LogSoftmax", 13, log_softmax);
  t.add("Hardmax", 1, hardmax_before_13);
  t.add("Hardmax", 13, hardmax);
}

}  // namespace tenon::onnx
