// Resize, as in ONNX's operator since version 18.
//
// The place of each result element in x is computed per axis, as if in f32. `nearest` copies the
// nearest element. `linear` and `cubic` compute a weighted sum of the elements around the place,
// one axis after the other, since the weights are separable. Places beyond the border use the last
// element. With `antialias` and a scale below 1 the kernel is stretched by 1 / scale and covers
// more elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "graph/op/families.h"
#include "graph/op/rule.h"
#include "graph/op/stages.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

struct Mode {
  std::string mode, coordinates, nearest;
  double cubic_a, extrapolation;
  bool exclude_outside, antialias;
  std::vector<Dim> sizes;
  std::vector<double> scales;  // if empty, sizes / dims

  bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

Mode mode_of(const InferContext& cx) {
  Mode m;
  m.mode = one_of(cx, "mode", {"nearest", "linear", "cubic"});
  m.coordinates =
      one_of(cx, "coordinates",
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
              "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  m.nearest =
      one_of(cx, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  m.cubic_a = cx.attr_float("cubic_coeff_a");
  m.extrapolation = cx.attr_float("extrapolation_value");
  m.exclude_outside = cx.attr_bool("exclude_outside");
  m.antialias = cx.attr_bool("antialias");
  m.sizes = cx.attr_dims("sizes");
  m.scales = cx.attr_floats("scales");
  return m;
}

TypeRef infer_resize(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  Mode m = mode_of(cx);
  if (static_cast<int64_t>(m.sizes.size()) != x.rank) {
    cx.fail(cat("'sizes' has ", m.sizes.size(), " entries, but 'x' has rank ", x.rank));
  }
  if (!m.scales.empty() && m.scales.size() != m.sizes.size()) {
    cx.fail(cat("'scales' has ", m.scales.size(), " entries, but 'x' has rank ", x.rank));
  }
  for (double s : m.scales) {
    if (!(s > 0)) cx.fail(cat("'scales' holds ", s, ", expected more than 0"));
    if (m.antialias && s < 0x1p-31) {
      cx.fail(cat("'scales' holds ", s, ", expected at least 2^-31 with 'antialias'"));
    }
  }
  for (size_t i = 0; i < m.sizes.size(); ++i) {
    cx.require_less_equal(0, m.sizes[i], cat("size of axis ", i, " is not negative"));
    cx.require_less_equal(min(m.sizes[i], 1), x.dims[i], cat("axis ", i, " of 'x' is not empty"));
  }
  if (m.crops()) {
    if (!cx.has(1)) cx.fail("tf_crop_and_resize needs the operand 'roi'");
    require_rank(cx, 1, 1);
    cx.require_equal(cx.tensor(1).dims[0], 2 * x.rank, "size of 'roi' and twice the rank of 'x'");
  }
  if (cx.has(2)) {
    if (!m.scales.empty()) cx.fail("scales are given both as 'scales' and as an operand");
    require_rank(cx, 2, 1);
    cx.require_equal(cx.tensor(2).dims[0], x.rank, "size of the operand 'scales' and rank of 'x'");
  }
  return tensor_type(x.dtype, m.sizes);
}

Scalar real(double v) {
  return literal(f32, v);
}
Scalar floor_of(const Scalar& v) {
  return unary(UnaryOp::kFloor, v);
}

// How one axis is resized.
struct Axis {
  const Mode& mode;
  const LowerContext& cx;
  size_t axis;
  Dim in, out;

  bool keeps() const {
    if (mode.crops() || cx.info().has(2) || !proves_equal(in, out)) return false;
    return mode.scales.empty() || mode.scales[axis] == 1;
  }
  Scalar scale() const {
    if (cx.info().has(2)) {
      Dim rank = static_cast<int64_t>(mode.sizes.size());
      return as(f32, load_within(cx.input(2), {index(static_cast<int64_t>(axis))}, {rank}));
    }
    if (!mode.scales.empty()) return real(mode.scales[axis]);
    return as(f32, size(out)) / as(f32, size(in));
  }
  Scalar roi(bool end) const {
    const BufferRef& b = cx.input(1);
    size_t rank = mode.sizes.size();
    Scalar place = index(static_cast<int64_t>(axis + (end ? rank : 0)));
    return as(f32, load_within(b, {place}, {Dim(2 * static_cast<int64_t>(rank))}));
  }

  // The place in x of element `o` of the result.
  Scalar place(const Scalar& o) const {
    Scalar at = as(f32, o), half = real(0.5), last = as(f32, size(in - 1));
    Scalar last_out = as(f32, size(out - 1));
    Scalar one_element = eq(size(out), index(1));
    const std::string& c = mode.coordinates;
    if (c == "asymmetric") return at / scale();
    if (c == "tf_half_pixel_for_nn") return (at + half) / scale();
    if (c == "align_corners") return select(one_element, real(0), at * last / last_out);
    if (c == "tf_crop_and_resize") {
      Scalar start = roi(false), end = roi(true);
      return select(one_element, half * (start + end) * last,
                    start * last + at * ((end - start) * last / last_out));
    }
    Scalar middle = (at + half) / scale() - half;
    if (c == "pytorch_half_pixel") return select(one_element, real(0), middle);
    if (c == "half_pixel_symmetric") {
      // The centre of the result is the centre of x, even if the size was rounded.
      Scalar adjustment = as(f32, size(out)) / (scale() * as(f32, size(in)));
      return as(f32, size(in)) * half * (real(1) - adjustment) + middle;
    }
    return middle;
  }

  // The element of x that `nearest` copies to element `o`.
  Scalar nearest_of(const Scalar& o) const {
    if (const auto known = nearest_by_integers(o)) return *known;
    return nearest(place(o));
  }
  // The same without floats, floor((p * o + r) / q), if that is so for each of a known number of
  // elements: kernels see which of them are neighbours.
  std::optional<Scalar> nearest_by_integers(const Scalar& o) const {
    constexpr int64_t kMostElements = 1 << 11, kMostQ = 64;
    const auto from = in.as_const(), to = out.as_const();
    if (!from || !to || *from == 0 || *to == 0 || *to > kMostElements) return std::nullopt;
    const int64_t p = *from / std::gcd(*from, *to), q = *to / std::gcd(*from, *to);
    if (q > kMostQ) return std::nullopt;
    // Of r:
    int64_t least = std::numeric_limits<int64_t>::min();
    int64_t greatest = std::numeric_limits<int64_t>::max();
    for (int64_t i = 0; i < *to; ++i) {
      const auto element = loop::as_int(nearest(place(index(i))));
      if (!element) return std::nullopt;  // it depends on an operand
      least = std::max(least, q * *element - p * i);
      greatest = std::min(greatest, q * *element - p * i + q - 1);
    }
    if (least > greatest) return std::nullopt;
    return floor_div(o * index(p) + index(least), index(q));
  }
  Scalar nearest(const Scalar& place) const {
    Scalar rounded;
    if (mode.nearest == "floor") {
      rounded = floor_of(place);
    } else if (mode.nearest == "ceil") {
      rounded = unary(UnaryOp::kCeil, place);
    } else if (mode.nearest == "round_prefer_floor") {
      rounded = unary(UnaryOp::kCeil, place - real(0.5));
    } else {
      rounded = floor_of(place + real(0.5));
    }
    return in_x(as(i64, rounded));
  }

  // Clamped to x; the kernel stops with an error if x is empty.
  Scalar in_x(const Scalar& i) const { return clamp(i, in) + window(0, 1, in); }

  // The inverse of the factor by which the kernel is stretched: the scale if it is below 1.
  Scalar stretch() const { return mode.antialias ? min_of(scale(), real(1)) : real(1); }
  // Half the width of the unstretched kernel.
  int64_t radius() const { return mode.mode == "linear" ? 1 : 2; }
  // How many elements on each side have a weight: an upper bound of ceil(radius / stretch), since a
  // scale is at least the quotient of the sizes.
  Dim reach() const {
    if (!mode.antialias) return radius();
    if (mode.scales.empty()) return max(ceildiv(in * radius(), out), radius());
    return static_cast<int64_t>(
        std::ceil(static_cast<double>(radius()) / std::min(1.0, mode.scales[axis])));
  }

  // The weight of an element at `distance` from the place.
  Scalar weight(const Scalar& distance) const {
    Scalar d = unary(UnaryOp::kAbs, distance), one = real(1);
    if (mode.mode == "linear") return max_of(one - d, real(0));
    // Keys' cubic convolution kernel.
    double a = mode.cubic_a;
    Scalar near = ((real(a + 2) * d - real(a + 3)) * d) * d + one;
    Scalar far = ((real(a) * d - real(5 * a)) * d + real(8 * a)) * d - real(4 * a);
    return select(le(d, one), near, select(lt(d, real(2)), far, real(0)));
  }

  struct Tap {
    Scalar element, weight;
  };
  // The `t`-th element around `place` and its weight, before normalisation.
  Tap tap(const Scalar& place, const Scalar& t) const {
    Scalar base = floor_of(place);
    Scalar offset = t - size(reach() - 1);
    Scalar w = weight((as(f32, offset) - (place - base)) * stretch());
    Scalar element = as(i64, base) + offset;
    if (mode.exclude_outside) w = select(in_range(element, in), w, real(0));
    return {in_x(element), w};
  }
  bool divides() const { return mode.exclude_outside || mode.antialias; }

  Scalar outside(const Scalar& place) const {
    return either(lt(place, real(0)), lt(as(f32, size(in - 1)), place));
  }
};

// Resizes one axis of `x` into `y`; sums have the dtype of y.
void add_weighted(const Axis& a, const BufferRef& x, const BufferRef& y,
                  std::vector<StageRef>* stages) {
  DataType dtype = y->dtype;
  Dim taps = a.reach() * 2;
  BufferRef total;
  if (a.divides()) {
    total = loop::buffer("total_weight", f32, {a.out});
    stages->push_back(loop::reduce_stage(
        total, Reduction::kSum, {taps},
        [&](const Indices& i, const Indices& t) { return a.tap(a.place(i[0]), t[0]).weight; }));
  }
  auto term = [&](const Indices& i, const Scalar& t) {
    Axis::Tap tap = a.tap(a.place(i[a.axis]), t);
    Indices at = i;
    at[a.axis] = tap.element;
    Scalar w = a.divides() ? tap.weight / load(total, Indices{i[a.axis]}) : tap.weight;
    return as(dtype, w) * as(dtype, load(x, at));
  };
  auto finished = [&](const Indices& i, const Scalar& sum) {
    if (!a.mode.crops()) return sum;
    return select(a.outside(a.place(i[a.axis])), number(dtype, a.mode.extrapolation), sum);
  };
  auto count = taps.as_const();
  if (count && *count <= 4) {
    stages->push_back(map_stage(y, [&](const Indices& i) {
      Scalar sum = term(i, index(0));
      for (int64_t t = 1; t < *count; ++t) sum = sum + term(i, index(t));
      return finished(i, sum);
    }));
    return;
  }
  BufferRef sum = a.mode.crops() ? loop::buffer("sum", dtype, dims_of(y)) : y;
  stages->push_back(
      loop::reduce_stage(sum, Reduction::kSum, {taps},
                         [&](const Indices& i, const Indices& t) { return term(i, t[0]); }));
  if (sum != y) {
    stages->push_back(map_stage(y, [&](const Indices& i) { return finished(i, load(sum, i)); }));
  }
}

loop::ComputeRef lower_resize(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  Mode mode = mode_of(cx.info());
  std::vector<Axis> axes;
  for (size_t k = 0; k < mode.sizes.size(); ++k) {
    Axis a{mode, cx, k, x->shape[k], y->shape[k]};
    if (!a.keeps()) axes.push_back(a);
  }
  std::vector<StageRef> stages;
  if (axes.empty()) {
    return cx.compute({map_stage(y, [&](const Indices& i) { return load(x, i); })});
  }
  if (mode.mode == "nearest") {
    return cx.compute({map_stage(y, [&](const Indices& i) {
      Indices at = i;
      Scalar outside;
      for (const Axis& a : axes) {
        at[a.axis] = a.nearest_of(i[a.axis]);
        Scalar out = a.outside(a.place(i[a.axis]));
        outside = outside ? either(outside, out) : out;
      }
      Scalar value = load(x, at);
      return mode.crops() ? select(outside, number(x->dtype, mode.extrapolation), value) : value;
    })});
  }
  DataType dtype = x->dtype == f64 ? f64 : f32;
  BufferRef from = x;
  std::vector<Dim> dims = dims_of(x);
  for (const Axis& a : axes) {
    dims[a.axis] = a.out;
    bool last = a.axis == axes.back().axis;
    BufferRef to = last && dtype == y->dtype ? y : loop::buffer("resized", dtype, dims);
    add_weighted(a, from, to, &stages);
    from = to;
  }
  if (from != y) {
    stages.push_back(map_stage(y, [&](const Indices& i) { return as(y->dtype, load(from, i)); }));
  }
  return cx.compute(stages);
}

Sample sample_resize(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4), sizes;
  for (int64_t& n : shape) {
    n = std::max<int64_t>(n, 1);
    sizes.push_back(random.coin() ? n : random.between(1, 6));
  }
  DataType dtype = random.dtype(kFloats);
  return {{sample_tensor(dtype, shape), unit_type()},
          attrs({{"sizes", attr_dims(to_dims(sizes))},
                 {"mode", random.pick<String>({"nearest", "linear", "cubic"})},
                 {"coordinates",
                  random.pick<String>({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                       "align_corners", "asymmetric"})},
                 {"exclude_outside", random.coin()},
                 {"antialias", random.coin()}})};
}

}  // namespace

void register_resize(OperatorTable& table) {
  table.add(
      {.name = "resize",
       .kind = OpKind::kOpaque,
       .operands = {{"x", kNumbers},
                    {"roi", kFloats, OperandSpec::kOptional},
                    {"scales", kFloats, OperandSpec::kOptional}},
       .attrs = {{"sizes", AttrKind::kDims, nullptr, "of the result"},
                 {"scales", AttrKind::kFloats, "[]", "per axis; empty: sizes over those of x"},
                 {"mode", AttrKind::kString, "\"nearest\"", "nearest, linear or cubic"},
                 {"coordinates", AttrKind::kString, "\"half_pixel\"",
                  "ONNX's coordinate_transformation_mode"},
                 {"nearest_mode", AttrKind::kString, "\"round_prefer_floor\"",
                  "round_prefer_floor, round_prefer_ceil, floor or ceil"},
                 {"cubic_coeff_a", AttrKind::kFloat, "-0.75", "of the cubic kernel"},
                 {"exclude_outside", AttrKind::kBool, "false",
                  "elements beyond the border weigh 0"},
                 {"extrapolation_value", AttrKind::kFloat, "0.0",
                  "of places outside of x, for tf_crop_and_resize"},
                 {"antialias", AttrKind::kBool, "false", "stretch the weights when shrinking"}},
       .summary = "x sampled at other sizes",
       .infer = infer_resize,
       .lower = lower_resize,
       .sample = sample_resize,
       .layout = LayoutRule::kNamedAxes});
}

}  // namespace tenon::graph
