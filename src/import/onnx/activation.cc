#include "import/onnx/activation.h"

#include <cmath>

namespace tenon::onnx::activation {

Operand expm1_negative(NodeContext& cx, const Operand& x) {
  Operand below = cx.op("minimum", {x, cx.scalar_like(x, 0)});
  return cx.sub(cx.op("exp", {below}), cx.scalar_like(x, 1));
}

Operand leaky_relu(NodeContext& cx, const Operand& x, double alpha) {
  Operand scaled = cx.mul(x, cx.scalar_like(x, alpha));
  return cx.op("where", {cx.op("less", {x, cx.scalar_like(x, 0)}), scaled, x});
}

Operand elu(NodeContext& cx, const Operand& x, double alpha) {
  Operand negative = cx.mul(expm1_negative(cx, x), cx.scalar_like(x, alpha));
  return cx.op("where", {cx.op("greater", {x, cx.scalar_like(x, 0)}), x, negative});
}

Operand softplus(NodeContext& cx, const Operand& x) {
  return cx.op("softplus", {x});
}

Operand softsign(NodeContext& cx, const Operand& x) {
  return cx.div(x, cx.add(cx.op("abs", {x}), cx.scalar_like(x, 1)));
}

Operand hard_sigmoid(NodeContext& cx, const Operand& x, double alpha, double beta) {
  Operand line = cx.add(cx.mul(x, cx.scalar_like(x, alpha)), cx.scalar_like(x, beta));
  return cx.op("clip", {line, cx.scalar_like(x, 0), cx.scalar_like(x, 1)});
}

Operand gelu(NodeContext& cx, const Operand& x) {
  Operand e = cx.op("erf", {cx.mul(x, cx.scalar_like(x, std::sqrt(0.5)))});
  return cx.mul(cx.mul(x, cx.scalar_like(x, 0.5)), cx.add(e, cx.scalar_like(x, 1)));
}

Operand gelu_tanh(NodeContext& cx, const Operand& x) {
  Operand cube = cx.mul(cx.mul(x, x), x);
  Operand inner = cx.add(x, cx.mul(cube, cx.scalar_like(x, 0.044715)));
  Operand t = cx.op("tanh", {cx.mul(inner, cx.scalar_like(x, std::sqrt(2 / M_PI)))});
  return cx.mul(cx.mul(x, cx.scalar_like(x, 0.5)), cx.add(t, cx.scalar_like(x, 1)));
}

}  // namespace tenon::onnx::activation
