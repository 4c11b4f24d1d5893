// Activations that are composed from arithmetic operators, for nodes and for recurrent networks.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx::activation {

// exp(x) - 1 for x <= 0, else 0, so that a large x doesn't overflow.
Operand expm1_negative(NodeContext& cx, const Operand& x);

Operand leaky_relu(NodeContext& cx, const Operand& x, double alpha);
Operand elu(NodeContext& cx, const Operand& x, double alpha);
// log(1 + exp(x))
Operand softplus(NodeContext& cx, const Operand& x);
// x / (1 + |x|)
Operand softsign(NodeContext& cx, const Operand& x);
// alpha x + beta, clipped to [0, 1]
Operand hard_sigmoid(NodeContext& cx, const Operand& x, double alpha, double beta);
// 0.5 x (1 + erf(x / sqrt 2))
Operand gelu(NodeContext& cx, const Operand& x);
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Operand gelu_tanh(NodeContext& cx, const Operand& x);

}  // namespace tenon::onnx::activation
