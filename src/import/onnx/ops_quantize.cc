// Quantisation.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// The axis; it has no meaning if the scale is a single number.
int64_t quantised_axis(NodeContext& cx) {
  int64_t axis = cx.attr_int("axis", 1);
  return cx.rank(1) == 0 || cx.dims(1)[0].is_const(1) ? axis : cx.axis(axis, cx.rank(0));
}

// The zero point in the shape of the scale: where both have one element, their ranks may differ.
Operand zero_point(NodeContext& cx) {
  Operand zero = cx.opt(2);
  if (!zero || cx.rank(zero) == cx.rank(1)) return zero;
  const auto is_single = [&](const Operand& x) {
    return cx.rank(x) == 0 || (cx.rank(x) == 1 && cx.dims(x)[0].is_const(1));
  };
  return is_single(zero) && is_single(cx.in(1)) ? cx.reshape(zero, cx.dims(1)) : zero;
}

Operands quantize_linear(NodeContext& cx) {
  cx.attr_dtype("precision", f32);
  DataType dtype = cx.attr_dtype("output_dtype", cx.has(2) ? cx.dtype(2) : u8);
  Operand x = cx.in(0), scale = cx.in(1);
  if (cx.dtype(scale) == f8e8m0fnu || cx.dtype(scale).is_int()) scale = cx.cast(scale, f32);
  int64_t axis = quantised_axis(cx), rank = cx.rank(x);
  if (axis < -rank || axis >= rank) axis = 0;  // irrelevant: one scale for all elements
  return {cx.op("quantize_linear", {x, scale, zero_point(cx)},
                attrs({{"axis", axis},
                       {"block_size", cx.attr_int("block_size", 0)},
                       {"dtype", Any(dtype)},
                       {"saturate", cx.attr_bool("saturate", true)}}))};
}

Operands dequantize_linear(NodeContext& cx) {
  DataType dtype = cx.attr_dtype("output_dtype", cx.dtype(1));
  Operand scale = cx.in(1);
  if (cx.dtype(scale) == f8e8m0fnu) scale = cx.cast(scale, f32);
  int64_t axis = quantised_axis(cx), rank = cx.rank(0);
  if (axis < -rank || axis >= rank) axis = 0;
  Operand y = cx.op("dequantize_linear", {cx.in(0), scale, zero_point(cx)},
                    attrs({{"axis", axis}, {"block_size", cx.attr_int("block_size", 0)}}));
  return {cx.cast(y, dtype)};
}

Operands dynamic_quantize_linear(NodeContext& cx) {
  return cx.b.ops("dynamic_quantize_linear", {cx.in(0)});
}

// com.microsoft: the sum or product of dequantised operands, quantised.
// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
Operands qlinear_binary(NodeContext& cx, const char* name) {
  auto real = [&](size_t i) {
    return cx.op("dequantize_linear", {cx.in(i), cx.in(i + 1), cx.opt(i + 2)},
                 attrs({{"axis", 0}}));
  };
  Operand y = cx.op(name, {real(0), real(3)});
  return {cx.op("quantize_linear", {y, cx.in(6), cx.opt(7)},
                attrs({{"axis", 0}, {"dtype", Any(cx.dtype(0))}}))};
}

Operands qlinear_add(NodeContext& cx) {
  return qlinear_binary(cx, "add");
}
Operands qlinear_mul(NodeContext& cx) {
  return qlinear_binary(cx, "mul");
}

}  // namespace

void register_quantize(OpTable& t) {
  t.add("QuantizeLinear", 10, quantize_linear);
  t.add("DequantizeLinear", 10, dequantize_linear);
  t.add("QuantizeLinear", 1, quantize_linear, kMicrosoft);
  t.add("DequantizeLinear", 1, dequantize_linear, kMicrosoft);
  t.add("DynamicQuantizeLinear", 11, dynamic_quantize_linear);
  t.add("QLinearAdd", 1, qlinear_add, kMicrosoft);
  t.add("QLinearMul", 1, qlinear_mul, kMicrosoft);
}

}  // namespace tenon::onnx
