// quantise_operators: computes with integers where exporters of quantised models write operators of
// floats between dequantize_linear and quantize_linear:
//
// - A product of dequantised operands becomes one of integers:
//
//     matmul((a - za) * sa, (b - zb) * sb)  =  matmul_integer(a, b, za, zb) * (sa * sb)
//
//   and the same for conv with constant weights. Both have 8 bits and parameters of one number;
//   those of a matrix or of weights may be one per column or output channel. Sums that might not
//   fit i32 stay floats: those of very many products, or of a symbolic number.
// - An operator that only moves or selects elements moves the integers, if they are dequantised and
//   quantised with the same parameters.
// - Where all that is quantised is a sum of such products and dequantised operands, the constant
//   factors in it are divided by the scale instead of the sum.
//
// The integer sums are exact, so that results differ from those of the float operators by their
// rounding.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module quantise_operators(const Module& module, PassContext& cx);

}  // namespace tenon::graph
