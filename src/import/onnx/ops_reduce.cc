// Reductions over axes that are an attribute or, in later versions, an operand; no axes means all.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

struct Plan {
  Operand x;
  Ints axes;
  bool keepdims = true;
};

// Calls `make` for the node's axes. One axis that is computed at run time becomes a choice; several
// are refused.
Operands over_axes(NodeContext& cx, const std::function<Operand(const Plan&)>& make) {
  Plan p;
  p.x = cx.in(0);
  p.keepdims = cx.attr_bool("keepdims", true);
  int64_t rank = cx.rank(0);
  Ints all = NodeContext::axes_below(rank);
  bool nothing = cx.attr_bool("noop_with_empty_axes", false), given = false;
  if (cx.has(1)) {
    Dims shape = cx.dims(1);
    int64_t length = shape.size() == 1 ? shape[0].as_const().value_or(-1) : -1;
    auto known = cx.ints(cx.in(1));
    given = true;
    if (length == 0) known = Ints();  // computed, but empty
    if (known) {
      p.axes = cx.axes(*known, rank);
    } else if (length == 1) {
      return {cx.for_axis(cx.in(1), rank, all, [&](int64_t axis) {
        Plan one = p;
        one.axes = {axis};
        return make(one);
      })};
    } else {
      cx.unsupported("several axes computed at run time not implemented");
    }
  } else if (cx.has_attr("axes")) {
    given = true;
    p.axes = cx.axes(cx.attr_ints("axes"), rank);
  }
  if ((!given || p.axes.empty()) && !nothing) p.axes = all;
  return {make(p)};
}

Operand reduce(NodeContext& cx, const char* name, const Plan& p, const Operand& x) {
  return cx.reduce(name, x, p.axes, p.keepdims);
}

template <const char* Name>
Operands plain(NodeContext& cx) {
  return over_axes(cx, [&](const Plan& p) { return reduce(cx, Name, p, p.x); });
}

Operands l1(NodeContext& cx) {
  return over_axes(cx,
                   [&](const Plan& p) { return reduce(cx, "reduce_sum", p, cx.op("abs", {p.x})); });
}

Operand sum_of_squares(NodeContext& cx, const Plan& p, const Operand& x) {
  return reduce(cx, "reduce_sum", p, cx.mul(x, x));
}

Operands sum_square(NodeContext& cx) {
  return over_axes(cx, [&](const Plan& p) { return sum_of_squares(cx, p, p.x); });
}

// Roots and logarithms of integers are computed in f64.
Operand real(NodeContext& cx, const Operand& x) {
  return cx.dtype(x).is_float() ? x : cx.cast(x, f64);
}

Operands l2(NodeContext& cx) {
  return over_axes(cx, [&](const Plan& p) {
    Operand root = cx.op("sqrt", {sum_of_squares(cx, p, real(cx, p.x))});
    return cx.cast(root, cx.dtype(p.x));
  });
}

Operands log_sum(NodeContext& cx) {
  return over_axes(cx, [&](const Plan& p) {
    Operand sum = real(cx, reduce(cx, "reduce_sum", p, p.x));
    return cx.cast(cx.op("log", {sum}), cx.dtype(p.x));
  });
}

// max + log(sum(exp(x - max))); an infinite maximum is replaced by 0 to avoid inf - inf.
Operands log_sum_exp(NodeContext& cx) {
  return over_axes(cx, [&](const Plan& p) {
    Operand x = real(cx, p.x);
    Operand top = cx.reduce("reduce_max", x, p.axes, true);
    top = cx.op("where", {cx.op("is_inf", {top}), cx.scalar_like(x, 0), top});
    Operand sum = cx.reduce("reduce_sum", cx.op("exp", {cx.sub(x, top)}), p.axes, true);
    Operand out = cx.add(cx.op("log", {sum}), top);
    if (!p.keepdims) out = cx.squeeze(out, p.axes);
    return cx.cast(out, cx.dtype(p.x));
  });
}

template <const char* Name>
Operands arg(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  return {cx.op(Name, {cx.in(0)},
                attrs({{"axis", axis},
                       {"keepdims", cx.attr_bool("keepdims", true)},
                       {"select_last", cx.attr_bool("select_last_index", false)}}))};
}

Operands global(NodeContext& cx, const char* name) {
  Ints axes;
  for (int64_t i = 2; i < cx.rank(0); ++i) axes.push_back(i);
  return {cx.reduce(name, cx.in(0), axes, true)};
}

Operands global_average(NodeContext& cx) {
  return global(cx, "reduce_mean");
}

Operands global_max(NodeContext& cx) {
  return global(cx, "reduce_max");
}

Operands global_lp(NodeContext& cx) {
  double p = static_cast<double>(cx.attr_int("p", 2));
  Operand x = cx.in(0);
  Ints axes;
  for (int64_t i = 2; i < cx.rank(0); ++i) axes.push_back(i);
  Operand powers = cx.op("pow", {cx.op("abs", {x}), cx.scalar_like(x, p)});
  Operand sum = cx.reduce("reduce_sum", powers, axes, true);
  return {cx.op("pow", {sum, cx.scalar_like(x, 1 / p)})};
}

}  // namespace

void register_reduce(OpTable& t) {
  static constexpr char sum[] = "reduce_sum", prod[] = "reduce_prod", mean[] = "reduce_mean",
                        max[] = "reduce_max", min[] = "reduce_min", argmax[] = "argmax",
                        argmin[] = "argmin";
  t.add("ReduceSum", 1, plain<sum>);
  t.add("ReduceProd", 1, plain<prod>);
  t.add("ReduceMean", 1, plain<mean>);
  t.add("ReduceMax", 1, plain<max>);
  t.add("ReduceMin", 1, plain<min>);
  t.add("ReduceL1", 1, widened<l1>);
  t.add("ReduceL2", 1, widened<l2>);
  t.add("ReduceSumSquare", 1, widened<sum_square>);
  t.add("ReduceLogSum", 1, widened<log_sum>);
  t.add("ReduceLogSumExp", 1, widened<log_sum_exp>);
  t.add("ArgMax", 1, arg<argmax>);
  t.add("ArgMin", 1, arg<argmin>);
  t.add("GlobalAveragePool", 1, global_average);
  t.add("GlobalMaxPool", 1, global_max);
  t.add("GlobalLpPool", 2, widened<global_lp>);
}

}  // namespace tenon::onnx
