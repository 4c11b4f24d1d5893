// Operators of com.microsoft that do the work of two or three of ONNX's: products and convolutions
// with a transpose, a residual or an activation, and sums with a bias.
// docs: ContribOperators.md of ONNX Runtime.

#include <algorithm>
#include <cmath>
#include <functional>

#include "import/onnx/activation.h"
#include "import/onnx/window.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// ---- products ----

// The axes of an operand of FusedMatMul as `batch` says: the rows are its first axis, before those
// of the batch. Its last two are exchanged as `swap` says.
Operand arranged(NodeContext& cx, size_t i, bool batch, bool swap) {
  const int64_t rank = cx.rank(i);
  Ints perm = NodeContext::axes_below(rank);
  if (batch && rank < 3)
    cx.invalid(cat("transBatch of an operand of rank ", rank), "3 or more: rows, batch, columns");
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (swap && rank >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return cx.transpose(cx.in(i), perm);
}

Operands fused_matmul(NodeContext& cx) {
  const double alpha = cx.attr_float("alpha", 1);
  const Operand y =
      cx.op("matmul",
            {arranged(cx, 0, cx.attr_bool("transBatchA", false), cx.attr_bool("transA", false)),
             arranged(cx, 1, cx.attr_bool("transBatchB", false), cx.attr_bool("transB", false))});
  return {alpha == 1 ? y : cx.mul(y, cx.scalar_like(y, alpha))};
}

// X, W, bias
Operands gemm_fast_gelu(NodeContext& cx) {
  const Operand y = cx.op("matmul", {cx.in(0), cx.in(1)});
  return {activation::gelu_tanh(cx, cx.has(2) ? cx.add(y, cx.in(2)) : y)};
}

// ---- activations ----

// The i-th of an activation's numbers, or its default.
using Parameter = std::function<double(size_t i, double otherwise)>;

Operand activated(NodeContext& cx, const Operand& x, const Parameter& number) {
  const std::string name = cx.attr_string("activation", "");
  auto scalar = [&](double v) { return cx.scalar_like(x, v); };
  if (name.empty()) return x;
  if (name == "Relu") return cx.op("relu", {x});
  if (name == "Sigmoid") return cx.op("sigmoid", {x});
  if (name == "Tanh") return cx.op("tanh", {x});
  if (name == "LeakyRelu") return activation::leaky_relu(cx, x, number(0, 0.01));
  if (name == "Elu") return activation::elu(cx, x, number(0, 1));
  if (name == "Softplus") return activation::softplus(cx, x);
  if (name == "Softsign") return activation::softsign(cx, x);
  if (name == "HardSigmoid") {
    return activation::hard_sigmoid(cx, x, number(0, 0.2), number(1, 0.5));
  }
  if (name == "HardSwish") return cx.mul(x, activation::hard_sigmoid(cx, x, 1.0 / 6, 0.5));
  if (name == "Clip") {
    constexpr double kLeast = -INFINITY, kGreatest = INFINITY;
    return cx.op("clip", {x, scalar(number(0, kLeast)), scalar(number(1, kGreatest))});
  }
  if (name == "ThresholdedRelu") {
    return cx.op("where", {cx.op("greater", {x, scalar(number(0, 1))}), x, scalar(0)});
  }
  cx.unsupported(cat("activation=", name, " not implemented"));
}

// A list of numbers, as convolutions have it.
Operand activated_by_list(NodeContext& cx, const Operand& x) {
  const std::vector<double> given = cx.attr_floats("activation_params");
  return activated(
      cx, x, [&](size_t i, double otherwise) { return i < given.size() ? given[i] : otherwise; });
}

Operands fused_gemm(NodeContext& cx) {
  const double gamma = cx.attr_float("activation_gamma", 0);
  if (gamma != 0) cx.unsupported(cat("activation_gamma=", gamma, " not implemented"));
  const Operand y = cx.as_onnx("Gemm", cx.all()).at(0);
  return {activated(cx, y, [&](size_t i, double otherwise) {
    return cx.attr_float(i == 0 ? "activation_alpha" : "activation_beta", otherwise);
  })};
}

// ---- convolutions ----

// X, W, B, Z: the activation of the convolution plus Z
Operands fused_conv(NodeContext& cx) {
  Operand y = cx.as_onnx("Conv", {cx.in(0), cx.in(1), cx.opt(2)}).at(0);
  if (cx.has(3)) y = cx.add(y, cx.in(3));
  return {activated_by_list(cx, y)};
}

// The sizes of the axes between the first and the last.
Dims inner_sizes(NodeContext& cx) {
  const Dims d = cx.dims(0);
  if (d.size() < 3 || d.size() > 5) cx.invalid(cat("X of rank ", d.size()), "3 to 5");
  return Dims(d.begin() + 1, d.end() - 1);
}

// X [N, ..., C], W [M, C / group, ...], B, Z
Operands nhwc_fused_conv(NodeContext& cx) {
  const Operand w = cx.in(1);
  graph::Attrs attributes = read_window(cx, conv_kernel(cx, w), inner_sizes(cx)).attrs();
  const int64_t groups = cx.attr_int("group", 1);
  if (groups <= 0) cx.invalid(cat("group=", groups), "1 or more");
  attributes.set("groups", Any(groups));
  attributes.set("layout", Any(String("NHWC")));
  Ints perm;  // [..., C / group, M]
  for (int64_t i = 2; i < cx.rank(w); ++i) perm.push_back(i);
  perm.insert(perm.end(), {1, 0});
  Operand y = cx.op("conv", {cx.in(0), cx.transpose(w, perm), cx.opt(2)}, attributes);
  if (cx.has(3)) y = cx.add(y, cx.in(3));
  return {activated_by_list(cx, y)};
}

Operands nhwc_max_pool(NodeContext& cx) {
  const Window window = read_window(cx, pool_kernel(cx), inner_sizes(cx));
  graph::Attrs attributes = window.attrs();
  attributes.set("kernel", graph::attr_ints(cx.attr_ints("kernel_shape")));
  attributes.set("ceil_mode", Any(cx.attr_bool("ceil_mode", false)));
  attributes.set("layout", Any(String("NHWC")));
  return {cx.op("max_pool", {cx.in(0)}, attributes)};
}

// ---- sums ----

// Softmax over the axes from `axis` on together. The bias is broadcast as in ONNX, whichever axes
// is_inner_broadcast says that these are.
Operands bias_softmax(NodeContext& cx) {
  cx.ignore("is_inner_broadcast");
  const Dims d = cx.dims(0);
  const auto axis = static_cast<size_t>(cx.axis(cx.attr_int("axis", 1), cx.rank(0)));
  const auto at = d.begin() + static_cast<std::ptrdiff_t>(axis);
  const Operand sum = cx.add(cx.in(0), cx.in(1));
  const Operand rows = cx.reshape(sum, {product(Dims(d.begin(), at)), product(Dims(at, d.end()))});
  return {cx.reshape(cx.op("softmax", {rows}, attrs({{"axis", 1}})), d)};
}

Operands bias_add(NodeContext& cx) {
  return {cx.add(cx.add(cx.in(0), cx.in(1)), cx.in(2))};
}

// The first half of the last axis times Gelu of the second.
Operands bias_split_gelu(NodeContext& cx) {
  const Operand sum = cx.add(cx.in(0), cx.in(1));
  const int64_t last = cx.rank(sum) - 1;
  const Dim half = divide({cx.dims(sum).back()}, {2});
  const Operand x = cx.slice(sum, last, 0, half), gate = cx.slice(sum, last, half, half);
  return {cx.mul(x, activation::gelu(cx, gate))};
}

}  // namespace

void register_microsoft_fused(OpTable& t) {
  t.add("FusedMatMul", 1, fused_matmul, kMicrosoft);
  t.add("TransposeMatMul", 1, fused_matmul, kMicrosoft);
  t.add("FusedGemm", 1, widened<fused_gemm>, kMicrosoft);
  t.add("GemmFastGelu", 1, widened<gemm_fast_gelu>, kMicrosoft);
  t.add("FusedConv", 1, fused_conv, kMicrosoft);
  t.add("NhwcConv", 1, nhwc_fused_conv, kMicrosoft);
  t.add("NhwcFusedConv", 1, nhwc_fused_conv, kMicrosoft);
  t.add("NhwcMaxPool", 1, nhwc_max_pool, kMicrosoft);
  t.add("BiasSoftmax", 1, widened<bias_softmax>, kMicrosoft);
  t.add("BiasAdd", 1, widened<bias_add>, kMicrosoft);
  t.add("BiasSplitGelu", 1, widened<bias_split_gelu>, kMicrosoft);
}

}  // namespace tenon::onnx
