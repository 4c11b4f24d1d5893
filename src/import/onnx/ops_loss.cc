// Losses.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// -weight[target] * log_prob[n, target, ...], summed or averaged; elements whose target is
// `ignore_index` don't count.
Operand negative_log_likelihood(NodeContext& cx, const Operand& log_prob, const Operand& target,
                                const Operand& weight) {
  std::string reduction = cx.attr_string("reduction", "mean");
  bool ignores = cx.has_attr("ignore_index");
  int64_t ignored = cx.attr_int("ignore_index", -1);
  if (cx.rank(log_prob) < 2)
    cx.invalid(cat("scores of rank ", cx.rank(log_prob)),
               "2 or more: batch, classes and any others");
  Operand index = cx.cast(target, i64), skip;
  if (ignores) {
    skip = cx.op("equal", {index, cx.integer(ignored)});
    index = cx.op("where", {skip, cx.integer(0), index});
  }
  Operand picked =
      cx.op("gather_elements", {log_prob, cx.unsqueeze(index, {1})}, attrs({{"axis", 1}}));
  Operand loss = cx.op("neg", {cx.squeeze(picked, {1})}), share;
  Operand zero = cx.scalar_like(log_prob, 0);
  if (weight) {
    share = cx.op("gather", {weight, index}, attrs({{"axis", 0}}));
    loss = cx.mul(loss, share);
  } else if (ignores && reduction == "mean") {
    share = cx.full(cx.dtype(log_prob), 1, cx.dims(loss));
  }
  if (ignores) {
    loss = cx.op("where", {skip, zero, loss});
    if (share) share = cx.op("where", {skip, zero, share});
  }
  if (reduction == "none") return loss;
  Ints all = NodeContext::axes_below(cx.rank(loss));
  if (reduction == "sum") return cx.reduce("reduce_sum", loss, all, false);
  if (reduction != "mean") cx.invalid(cat("reduction=", reduction), "none, sum or mean");
  if (!share) return cx.reduce("reduce_mean", loss, all, false);
  return cx.div(cx.reduce("reduce_sum", loss, all, false),
                cx.reduce("reduce_sum", share, all, false));
}

Operands nll_loss(NodeContext& cx) {
  return {negative_log_likelihood(cx, cx.in(0), cx.in(1), cx.opt(2))};
}

Operands softmax_cross_entropy(NodeContext& cx) {
  Operand log_prob = cx.op("log_softmax", {cx.in(0)}, attrs({{"axis", 1}}));
  return {negative_log_likelihood(cx, log_prob, cx.in(1), cx.opt(2)), log_prob};
}

}  // namespace

void register_loss(OpTable& t) {
  t.add("NegativeLogLikelihoodLoss", 12, nll_loss);
  t.add("SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy);
}

}  // namespace tenon::onnx
