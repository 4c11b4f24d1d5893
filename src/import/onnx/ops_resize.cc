// Resize and Upsample: sizes from scales, and the conventions of each version.

#include <cmath>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;

// floor(size * scale), computed in float32 as in ONNX Runtime.
Dim scaled(NodeContext& cx, const Dim& size, double scale) {
  if (!(scale > 0) || scale > 1e6)
    cx.invalid(cat("a scale of ", scale), "a positive number, at most 1e6");
  if (auto c = size.as_const()) {
    float product = static_cast<float>(*c) * static_cast<float>(scale);
    return cx.to_integer(std::floor(product), "a size");
  }
  for (int64_t q = 1; q <= 1024; ++q) {  // a ratio of small numbers, rounded to float32
    double p = std::round(scale * static_cast<double>(q));
    if (std::abs(scale * static_cast<double>(q) - p) <= 0x1p-24 * p) {
      return floordiv(size * static_cast<int64_t>(p), q);
    }
  }
  Operand product = cx.mul(cx.cast(cx.dims_tensor({size}), f32), cx.scalar(f32, scale));
  return cx.elements(cx.cast(cx.op("floor", {product}), i64))[0];
}

// Constant scales, one per axis; nullopt if they are computed.
std::optional<std::vector<double>> floats_of(NodeContext& cx, const Operand& x) {
  Tensor t = cx.constant_of(x);
  if (!t || !t.dtype().is_float()) return std::nullopt;
  std::vector<double> out;
  for (int64_t i = 0; i < t.count(); ++i) out.push_back(element(t, i));
  return out;
}

bool is_empty(NodeContext& cx, size_t i) {
  return !cx.has(i) || (cx.rank(i) == 1 && cx.dims(i)[0].is_const(0));
}

// floor(shape of x * scales) for computed scales.
Dims scaled_at_run_time(NodeContext& cx, const Operand& x, const Operand& scales) {
  Operand sizes = cx.mul(cx.cast(cx.op("shape_of", {x}), f32), cx.cast(scales, f32));
  return cx.elements(cx.cast(cx.op("floor", {sizes}), i64));
}

// ---- before version 11 ----

// Scales below 1 round the place up, others down, so the axes of each kind are resized separately.
Operand resize_nearest_simple(NodeContext& cx, const Operand& x,
                              const std::vector<double>& scales) {
  Operand y = x;
  for (bool shrink : {true, false}) {
    Dims sizes = cx.dims(y);
    std::vector<double> now(scales.size(), 1);
    bool any = false;
    for (size_t i = 0; i < scales.size(); ++i) {
      if (scales[i] == 1 || (scales[i] < 1) != shrink) continue;
      sizes[i] = scaled(cx, sizes[i], scales[i]);
      now[i] = scales[i];
      any = true;
    }
    if (!any) continue;
    y = cx.op("resize", {y, {}, {}},
              attrs({{"sizes", attr_dims(sizes)},
                     {"scales", graph::attr_floats(now)},
                     {"mode", String("nearest")},
                     {"coordinates", String("asymmetric")},
                     {"nearest_mode", String(shrink ? "ceil" : "floor")}}));
  }
  return y;
}

Operands resize_old(NodeContext& cx, std::optional<std::vector<double>> scales,
                    const Operand& computed) {
  std::string mode = cx.attr_string("mode", "nearest");
  Operand x = cx.in(0);
  if (mode == "bilinear") mode = "linear";
  if (mode != "nearest" && mode != "linear") cx.invalid(cat("mode=", mode), "nearest or linear");
  if (scales && scales->size() != static_cast<size_t>(cx.rank(x)))
    cx.invalid(cat(scales->size(), " scales"), cat(cx.rank(x), ", one for each axis"));
  if (scales && mode == "nearest") return {resize_nearest_simple(cx, x, *scales)};
  graph::Attrs a = attrs({{"mode", String(mode)},
                          {"coordinates", String("asymmetric")},
                          {"nearest_mode", String("floor")}});
  if (!scales) {
    a.set("sizes", attr_dims(scaled_at_run_time(cx, x, computed)));
    return {cx.op("resize", {x, {}, cx.cast(computed, f32)}, a)};
  }
  Dims sizes = cx.dims(x);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = scaled(cx, sizes[i], (*scales)[i]);
  a.set("sizes", attr_dims(sizes));
  a.set("scales", graph::attr_floats(*scales));
  return {cx.op("resize", {x, {}, {}}, a)};
}

Operands upsample_attributes(NodeContext& cx) {
  return resize_old(cx, cx.attr_floats("scales"), {});
}

Operands resize_10(NodeContext& cx) {
  return resize_old(cx, floats_of(cx, cx.in(1)), cx.in(1));
}

// ---- since version 11 ----

// The region for all axes as [starts, ends]: all of an axis that is not in `axes`.
Operand whole_roi(NodeContext& cx, const Operand& roi, const Ints& axes, size_t rank) {
  if (axes.size() == rank) return cx.cast(roi, f32);
  std::vector<double> all(2 * rank, 0);
  std::fill(all.begin() + static_cast<std::ptrdiff_t>(rank), all.end(), 1.0);
  Ints places = axes;
  for (int64_t a : axes) places.push_back(a + static_cast<int64_t>(rank));
  Operand base = graph::constant(make_tensor(f32, {static_cast<int64_t>(2 * rank)}, all));
  return cx.op("scatter_elements", {base, cx.ints_tensor(places), cx.cast(roi, f32)},
               attrs({{"axis", 0}}));
}

// The least or greatest of the scales that the sizes require; null if they are known only at run
// time.
std::optional<double> common_scale(NodeContext& cx, bool least, const Ints& axes,
                                   const Dims& sizes) {
  const Dims from = cx.dims(0);
  std::optional<double> scale;
  for (int64_t axis : axes) {
    const size_t a = static_cast<size_t>(axis);
    const auto in = from[a].as_const(), out = sizes[a].as_const();
    if (!in || !out) return std::nullopt;
    if (*in == 0) cx.invalid("an operand without elements", "a scale from its sizes");
    const double s = static_cast<double>(*out) / static_cast<double>(*in);
    scale = !scale ? s : least ? std::min(*scale, s) : std::max(*scale, s);
  }
  return scale;
}

// Uses one scale for all axes, such that none, or at least one, is larger than the sizes say.
// Changes the sizes, and sets either `scales` or `computed`, a tensor of one scale for each axis.
void keep_aspect(NodeContext& cx, const std::string& policy, const Ints& axes, Dims* sizes,
                 std::vector<double>* scales, Operand* computed) {
  if (policy != "not_larger" && policy != "not_smaller") {
    cx.invalid(cat("keep_aspect_ratio_policy=", policy), "stretch, not_larger or not_smaller");
  }
  const bool least = policy == "not_larger";
  const Dims from = cx.dims(0);
  if (axes.empty()) return;
  if (auto scale = common_scale(cx, least, axes, *sizes)) {
    scales->assign(from.size(), 1);
    for (int64_t axis : axes) {
      const size_t a = static_cast<size_t>(axis);
      const double size = std::round(*scale * static_cast<double>(*from[a].as_const()));
      (*sizes)[a] = cx.to_integer(size, "a size");
      (*scales)[a] = *scale;
    }
    return;
  }
  Dims in, out;
  for (int64_t axis : axes) {
    const size_t a = static_cast<size_t>(axis);
    cx.b.check(graph::CheckKind::kLessEqual, 1, from[a],
               "resize: a scale from the size of an axis without elements");
    in.push_back(from[a]);
    out.push_back((*sizes)[a]);
  }
  const Operand before = cx.cast(cx.dims_tensor(in), f64);
  const Operand each = cx.div(cx.cast(cx.dims_tensor(out), f64), before);
  const Operand scale = cx.reduce(least ? "reduce_min" : "reduce_max", each, {0}, true);
  const Operand rounded = cx.op("floor", {cx.add(cx.mul(before, scale), cx.scalar(f64, 0.5))});
  const Dims after = cx.elements(cx.cast(rounded, i64));
  for (size_t i = 0; i < axes.size(); ++i) (*sizes)[static_cast<size_t>(axes[i])] = after[i];
  const Operand ones = cx.full(f32, 1, {static_cast<int64_t>(from.size())});
  const Operand spread = cx.expand(cx.cast(scale, f32), {static_cast<int64_t>(axes.size())});
  *computed = cx.op("scatter_elements", {ones, cx.ints_tensor(axes), spread}, attrs({{"axis", 0}}));
}

Operands resize(NodeContext& cx) {
  Operand x = cx.in(0);
  size_t rank = static_cast<size_t>(cx.rank(x));
  Ints axes = NodeContext::axes_below(static_cast<int64_t>(rank));
  if (cx.has_attr("axes")) axes = cx.axes(cx.attr_ints("axes"), static_cast<int64_t>(rank));
  std::string policy = cx.attr_string("keep_aspect_ratio_policy", "stretch");
  std::string coordinates = cx.attr_string("coordinate_transformation_mode", "half_pixel");
  std::string mode = cx.attr_string("mode", "nearest");
  graph::Attrs a =
      attrs({{"mode", String(mode)},
             {"coordinates", String(coordinates)},
             {"nearest_mode", String(cx.attr_string("nearest_mode", "round_prefer_floor"))},
             {"cubic_coeff_a", cx.attr_float("cubic_coeff_a", -0.75)},
             {"exclude_outside", cx.attr_bool("exclude_outside", false)},
             {"extrapolation_value", cx.attr_float("extrapolation_value", 0)},
             {"antialias", cx.attr_bool("antialias", false)}});
  Operand roi, computed;
  if (coordinates == "tf_crop_and_resize") roi = whole_roi(cx, cx.in(1), axes, rank);
  Dims sizes = cx.dims(x);
  std::vector<double> scales;
  if (!is_empty(cx, 3)) {
    Dims given = cx.elements(cx.in(3), axes.size());
    if (given.size() != axes.size())
      cx.invalid(cat(given.size(), " sizes"), cat(axes.size(), ", one for each axis"));
    for (size_t i = 0; i < axes.size(); ++i) sizes[static_cast<size_t>(axes[i])] = given[i];
    if (policy != "stretch") keep_aspect(cx, policy, axes, &sizes, &scales, &computed);
  } else if (!is_empty(cx, 2)) {
    if (auto given = floats_of(cx, cx.in(2))) {
      if (given->size() != axes.size())
        cx.invalid(cat(given->size(), " scales"), cat(axes.size(), ", one for each axis"));
      scales.assign(rank, 1);
      for (size_t i = 0; i < axes.size(); ++i) {
        size_t axis = static_cast<size_t>(axes[i]);
        scales[axis] = (*given)[i];
        sizes[axis] = scaled(cx, sizes[axis], (*given)[i]);
      }
    } else if (axes.size() == rank) {
      computed = cx.cast(cx.in(2), f32);
      sizes = scaled_at_run_time(cx, x, computed);
    } else {
      Operand ones = cx.full(f32, 1, {static_cast<int64_t>(rank)});
      computed = cx.op("scatter_elements", {ones, cx.ints_tensor(axes), cx.cast(cx.in(2), f32)},
                       attrs({{"axis", 0}}));
      sizes = scaled_at_run_time(cx, x, computed);
    }
  } else {
    cx.invalid("neither scales nor sizes", "one of them");
  }
  a.set("sizes", attr_dims(sizes));
  a.set("scales", graph::attr_floats(scales));
  return {cx.op("resize", {x, roi, computed}, a)};
}

}  // namespace

void register_resize(OpTable& t) {
  t.add("Upsample", 7, with_booleans<upsample_attributes>);
  t.add("Upsample", 9, with_booleans<resize_10>);
  t.add("Resize", 10, with_booleans<resize_10>);
  t.add("Resize", 11, with_booleans<resize>);
}

}  // namespace tenon::onnx
