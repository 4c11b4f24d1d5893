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

}  // namespace tenon::onnx::activation
