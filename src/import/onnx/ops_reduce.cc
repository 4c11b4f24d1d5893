// Reductions over axes that are an attribute or, in later versions, an operand; no axes means all.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

struct Plan {
  Operand x;
  Ints axes;
  bool keepdims = true;
  Operand mask;  // bool[rank]: the axes, where they are computed at run time
};

// The maximum, sum ... over the axes of a mask, kept as size 1: one axis after the other, each if
// the mask has it.
Operand reduce_masked(NodeContext& cx, std::string_view name, Operand x, const Operand& mask) {
  for (int64_t axis = 0, rank = cx.rank(x); axis < rank; ++axis) {
    const Operand chosen = cx.reshape(cx.slice(mask, 0, axis, 1), {});
    x = cx.with_symbols(cx.b.if_(
        chosen, [&] { return cx.reduce(name, x, {axis}, true); }, [&] { return x; }));
  }
  return x;
}

// The number of elements, of the element type of x.
Operand count_of(NodeContext& cx, const Operand& x) {
  return cx.cast(cx.op("size_of", {x}), cx.dtype(x));
}

// Over the axes of the plan, kept as size 1.
Operand reduce_kept(NodeContext& cx, std::string_view name, const Plan& p, const Operand& x) {
  if (!p.mask) return cx.reduce(name, x, p.axes, true);
  const DataType dtype = cx.dtype(x), computed = dtype == f16 ? f32 : dtype;
  const Operand wide = cx.cast(x, computed);
  const bool mean = name == "reduce_mean";
  Operand out = reduce_masked(cx, mean ? "reduce_sum" : name, wide, p.mask);
  if (mean) out = cx.div(out, cx.div(count_of(cx, wide), count_of(cx, out)));
  return cx.cast(out, dtype);
}

// A reduction whose axes are kept, without them if the node says so.
Operand without_axes(NodeContext& cx, const Plan& p, const Operand& kept) {
  if (p.keepdims) return kept;
  return p.mask ? cx.remove_masked(kept, p.mask, p.axes.size()) : cx.squeeze(kept, p.axes);
}

// Calls `make` for the node's axes. One axis that is computed at run time becomes a choice.
Operands over_axes(NodeContext& cx, const std::function<Operand(const Plan&)>& make) {
  Plan p;
  p.x = cx.in(0);
  p.keepdims = cx.attr_bool("keepdims", true);
  int64_t rank = cx.rank(0);
  Ints all = NodeContext::axes_below(rank);
  bool nothing = cx.attr_bool("noop_with_empty_axes", false), given = false;
  if (cx.has(1)) {
    Dims shape = cx.dims(1);
    if (shape.size() != 1) cx.invalid(cat("axes of rank ", shape.size()), "a list");
    auto known = cx.ints(cx.in(1));
    given = true;
    if (shape[0].is_const(0)) known = Ints();  // computed, but empty
    if (!known && cx.constant_of(cx.in(1))) known = cx.const_ints(1, "axes");  // throws
    if (known) {
      p.axes = cx.axes(*known, rank);
    } else if (shape[0].is_const(1)) {
      return {cx.for_axis(cx.in(1), rank, all, [&](int64_t axis) {
        Plan one = p;
        one.axes = {axis};
        return make(one);
      })};
    } else {
      auto count = shape[0].as_const();
      if (!count && !p.keepdims)
        cx.unsupported("keepdims=0 for a number of axes known only at run time not implemented");
      if (count > rank)
        cx.invalid(cat(*count, " axes of a tensor of rank ", rank), cat("at most ", rank));
      p.axes.resize(static_cast<size_t>(count.value_or(0)));  // which are not known yet
      p.mask = cx.axes_mask(cx.in(1), rank);
      if (!count && !nothing) {  // no axes at run time mean all
        const Operand none = cx.op("equal", {cx.dim_scalar(shape[0]), cx.integer(0)});
        p.mask = cx.op("logical_or", {p.mask, none});
      }
      return {make(p)};
    }
  } else if (cx.has_attr("axes")) {
    given = true;
    p.axes = cx.axes(cx.attr_ints("axes"), rank);
  }
  if ((!given || p.axes.empty()) && !nothing) p.axes = all;
  return {make(p)};
}

Operand reduce(NodeContext& cx, const char* name, const Plan& p, const Operand& x) {
  if (!p.mask) return cx.reduce(name, x, p.axes, p.keepdims);
  return without_axes(cx, p, reduce_kept(cx, name, p, x));
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
    Operand top = reduce_kept(cx, "reduce_max", p, x);
    top = cx.op("where", {cx.op("is_inf", {top}), cx.scalar_like(x, 0), top});
    Operand sum = reduce_kept(cx, "reduce_sum", p, cx.op("exp", {cx.sub(x, top)}));
    Operand out = without_axes(cx, p, cx.add(cx.op("log", {sum}), top));
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
