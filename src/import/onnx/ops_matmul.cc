// Matrix products, including those of integers.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

Operand swap_last(NodeContext& cx, const Operand& x) {
  int64_t rank = cx.rank(x);
  if (rank < 2) return x;
  Ints perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(rank - 1)], perm[static_cast<size_t>(rank - 2)]);
  return cx.transpose(x, perm);
}

Operand scaled(NodeContext& cx, const Operand& x, double factor) {
  return factor == 1 ? x : cx.mul(x, cx.scalar_like(x, factor));
}

Operands matmul(NodeContext& cx) {
  return {cx.op("matmul", {cx.in(0), cx.in(1)})};
}

// Integer products are exact if alpha and beta are integers, as they mostly are.
Operands gemm(NodeContext& cx) {
  double alpha = cx.attr_float("alpha", 1), beta = cx.attr_float("beta", 1);
  bool trans_a = cx.attr_bool("transA", false), trans_b = cx.attr_bool("transB", false);
  bool broadcast = cx.attr_bool("broadcast", true);  // before opset 7
  Operand a = cx.in(0), b = cx.in(1);
  if (cx.rank(a) != 2 || cx.rank(b) != 2)
    cx.invalid(cat("operands of rank ", cx.rank(a), " and ", cx.rank(b)), "matrices");
  if (trans_a) a = swap_last(cx, a);
  if (trans_b) b = swap_last(cx, b);
  Operand y = scaled(cx, cx.op("matmul", {a, b}), alpha);
  if (!cx.has(2) || beta == 0) return {y};
  Operand c = scaled(cx, cx.in(2), beta);
  if (!broadcast && cx.rank(c) != 2)
    cx.invalid(cat("C of rank ", cx.rank(c), " without broadcast=1"), "rank 2");
  Operand out = cx.add(y, c);
  if (cx.rank(out) != 2)
    cx.invalid(cat("C of rank ", cx.rank(c)), "at most 2: it is broadcast to the product");
  return {out};
}

// A parameter of the rows of A, such as a zero point: one of rank 1 has an element per row.
Operand row_parameter(NodeContext& cx, const Operand& p) {
  const bool per_row = p && cx.rank(p) == 1 && !cx.dims(p)[0].is_const(1);
  return per_row ? cx.unsqueeze(p, {1}) : p;
}

// The product of A and B less their zero points: of integers in i32, of floats of 8 bits in f32.
Operand centred_product(NodeContext& cx, const Operand& a, const Operand& b, const Operand& a_zero,
                        const Operand& b_zero) {
  const Operand rows = row_parameter(cx, a_zero);
  if (!cx.dtype(a).is_float() && !cx.dtype(b).is_float())
    return cx.op("matmul_integer", {a, b, rows, b_zero});
  const auto centred = [&](const Operand& x, const Operand& zero) {
    return zero ? cx.sub(cx.cast(x, f32), cx.cast(zero, f32)) : cx.cast(x, f32);
  };
  return cx.op("matmul", {centred(a, rows), centred(b, b_zero)});
}

Operands matmul_integer(NodeContext& cx) {
  return {centred_product(cx, cx.in(0), cx.in(1), cx.opt(2), cx.opt(3))};
}

// com.microsoft: the product of integers, scaled to floats and biased.
Operands matmul_integer_to_float(NodeContext& cx) {
  // a, b, a_scale, b_scale, a_zero, b_zero, bias
  Operand product = centred_product(cx, cx.in(0), cx.in(1), cx.opt(4), cx.opt(5));
  Operand y = cx.mul(cx.cast(product, cx.dtype(2)), cx.mul(cx.in(2), cx.in(3)));
  return {cx.has(6) ? cx.add(y, cx.in(6)) : y};
}

Operands dynamic_quantize_matmul(NodeContext& cx) {
  // a (float), b (integer), b_scale, b_zero, bias
  Operands q = cx.b.ops("dynamic_quantize_linear", {cx.in(0)});
  Operand product = centred_product(cx, q[0], cx.in(1), q[2], cx.opt(3));
  Operand y = cx.mul(cx.cast(product, f32), cx.mul(q[1], cx.in(2)));
  return {cx.has(4) ? cx.add(y, cx.in(4)) : y};
}

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
Operands qlinear_matmul(NodeContext& cx) {
  const DataType dtype = cx.dtype(7);
  Operand product = centred_product(cx, cx.in(0), cx.in(3), cx.in(2), cx.in(5));
  Operand scale = cx.mul(cx.cast(row_parameter(cx, cx.in(1)), f32), cx.cast(cx.in(4), f32));
  Operand y = cx.mul(cx.cast(product, f32), scale);
  y = cx.div(y, cx.cast(row_parameter(cx, cx.in(6)), f32));
  const Operand zero = cx.cast(row_parameter(cx, cx.in(7)), f32);
  if (dtype.is_float()) {
    return {cx.op("quantize_linear", {cx.add(y, zero), cx.scalar(f32, 1)},
                  graph::attrs({{"axis", 0}, {"dtype", Any(dtype)}}))};
  }
  return {cx.cast(cx.add(cx.op("round", {y}), zero), dtype)};  // saturates
}

Operands det(NodeContext& cx) {
  if (cx.rank(0) < 2) cx.invalid(cat("an operand of rank ", cx.rank(0)), "2 or more: matrices");
  return {cx.op("det", {cx.in(0)})};
}

}  // namespace

void register_matmul(OpTable& t) {
  t.add("Det", 11, widened<det>);
  t.add("MatMul", 1, matmul);
  t.add("Gemm", 1, widened<gemm>);
  t.add("MatMulInteger", 10, matmul_integer);
  t.add("MatMulIntegerToFloat", 1, matmul_integer_to_float, kMicrosoft);
  t.add("DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, kMicrosoft);
  t.add("QLinearMatMul", 10, qlinear_matmul);
}

}  // namespace tenon::onnx
