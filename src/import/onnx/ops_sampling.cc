// Sampling at computed positions.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;
using graph::CheckKind;

// The elements around the sampled places along one axis: their indices, weights, and whether they
// exist, all [N, Q].
struct Tap {
  Operand index, weight, exists;  // a null weight is 1, a null `exists` is true
};

class Sampler {
 public:
  explicit Sampler(NodeContext& cx) : cx_(cx) {
    mode_ = cx.attr_string("mode", "linear");
    if (mode_ == "bilinear") mode_ = "linear";
    if (mode_ == "bicubic") mode_ = "cubic";
    if (mode_ != "linear" && mode_ != "nearest" && mode_ != "cubic")
      cx.invalid(cat("mode=", mode_), "linear, nearest or cubic");
    padding_ = cx.attr_string("padding_mode", "zeros");
    if (padding_ != "zeros" && padding_ != "border" && padding_ != "reflection") {
      cx.invalid(cat("padding_mode=", padding_), "zeros, border or reflection");
    }
    align_ = cx.attr_bool("align_corners", false);
  }

  Operand run() {
    Operand x = cx_.in(0), grid = cx_.in(1);
    Dims shape = cx_.dims(x), places = cx_.dims(grid);
    if (shape.size() < 3 || places.size() != shape.size()) {
      cx_.invalid(cat("operands of rank ", shape.size(), " and ", places.size()),
                  "one rank, 3 or more");
    }
    size_t axes = shape.size() - 2;
    if (axes > 3) cx_.unsupported(cat("rank ", shape.size(), " not implemented"));
    Dims spatial(shape.begin() + 2, shape.end());
    Dims out(places.begin() + 1, places.end() - 1);
    Dim count = product(out);
    dtype_ = cx_.dtype(x);
    // x as [N, P, C] and the grid as [N, Q, axes]; the grid's last axis counts from the last of x.
    Operand flat = cx_.transpose(cx_.reshape(x, {shape[0], shape[1], product(spatial)}), {0, 2, 1});
    Operand points = cx_.cast(cx_.reshape(grid, {places[0], count, places.back()}), dtype_);
    std::vector<std::vector<Tap>> taps(axes);
    for (size_t a = 0; a < axes; ++a) {
      Operand g = cx_.squeeze(cx_.slice(points, 2, static_cast<int64_t>(axes - 1 - a), 1), {2});
      taps[a] = taps_along(g, spatial[a]);
    }
    Operand sum;
    std::vector<size_t> choice(axes, 0);
    for (;;) {
      add(flat, spatial, taps, choice, &sum);
      size_t a = 0;
      while (a < axes && ++choice[a] == taps[a].size()) choice[a++] = 0;
      if (a == axes) break;
    }
    Dims result = {shape[0], shape[1]};
    result.insert(result.end(), out.begin(), out.end());
    return cx_.reshape(cx_.transpose(sum, {0, 2, 1}), result);
  }

 private:
  Operand number(double v) { return cx_.scalar(dtype_, v); }
  Operand size_of(const Dim& d) { return cx_.cast(cx_.dim_scalar(d), dtype_); }

  std::vector<Tap> taps_along(const Operand& g, const Dim& size) {
    Operand length = size_of(size), one = number(1), half = number(0.5);
    Operand moved = cx_.add(g, one), place;
    if (align_) {
      place = cx_.mul(cx_.mul(moved, half), cx_.sub(length, one));
    } else {
      place = cx_.mul(cx_.sub(cx_.mul(moved, length), one), half);
    }
    if (mode_ == "nearest") return {tap(cx_.op("round", {place}), {}, length)};
    Operand base = cx_.op("floor", {place}), t = cx_.sub(place, base);
    if (mode_ == "linear") {
      return {tap(base, cx_.sub(one, t), length), tap(cx_.add(base, one), t, length)};
    }
    // Keys' cubic convolution kernel with a = -0.75.
    const double a = -0.75;
    auto near = [&](const Operand& d) {
      Operand poly = cx_.sub(cx_.mul(number(a + 2), d), number(a + 3));
      return cx_.add(cx_.mul(cx_.mul(poly, d), d), one);
    };
    auto far = [&](const Operand& d) {
      Operand p = cx_.sub(cx_.mul(number(a), d), number(5 * a));
      p = cx_.add(cx_.mul(p, d), number(8 * a));
      return cx_.sub(cx_.mul(p, d), number(4 * a));
    };
    Operand rest = cx_.sub(one, t);
    return {tap(cx_.sub(base, one), far(cx_.add(t, one)), length), tap(base, near(t), length),
            tap(cx_.add(base, one), near(rest), length),
            tap(cx_.add(base, number(2)), far(cx_.add(rest, one)), length)};
  }

  Tap tap(Operand at, const Operand& weight, const Operand& length) {
    Operand zero = number(0), last = cx_.sub(length, number(1));
    Tap out{{}, weight, {}};
    if (padding_ == "zeros") {
      out.exists = cx_.op("logical_and",
                          {cx_.op("less_equal", {zero, at}), cx_.op("less_equal", {at, last})});
    } else if (padding_ == "reflection") {
      // Reflects between the borders: a triangle wave.
      Operand low = align_ ? zero : number(-0.5);
      Operand span = cx_.op("maximum", {align_ ? last : length, number(1)});
      Operand twice = cx_.mul(span, number(2));
      Operand phase = cx_.op("mod", {cx_.sub(at, low), twice});
      at = cx_.add(low, cx_.op("minimum", {phase, cx_.sub(twice, phase)}));
    }
    // Rounded, since a reflected place is an integer up to rounding errors.
    at = cx_.op("clip", {cx_.op("round", {at}), zero, last});
    out.index = cx_.cast(at, i64);
    return out;
  }

  // Adds weight * x for one combination of taps.
  void add(const Operand& flat, const Dims& spatial, const std::vector<std::vector<Tap>>& taps,
           const std::vector<size_t>& choice, Operand* sum) {
    Operand index, weight, exists;
    for (size_t a = 0; a < choice.size(); ++a) {
      const Tap& t = taps[a][choice[a]];
      index = index ? cx_.add(cx_.mul(index, cx_.dim_scalar(spatial[a])), t.index) : t.index;
      if (t.weight) weight = weight ? cx_.mul(weight, t.weight) : t.weight;
      if (t.exists) exists = exists ? cx_.op("logical_and", {exists, t.exists}) : t.exists;
    }
    Operand value =
        cx_.op("gather_nd", {flat, cx_.unsqueeze(index, {2})}, attrs({{"batch_dims", 1}}));
    if (weight) value = cx_.mul(value, cx_.unsqueeze(weight, {2}));
    if (exists) value = cx_.op("where", {cx_.unsqueeze(exists, {2}), value, number(0)});
    *sum = *sum ? cx_.add(*sum, value) : value;
  }

  NodeContext& cx_;
  std::string mode_, padding_;
  bool align_ = false;
  DataType dtype_;
};

Operands grid_sample(NodeContext& cx) {
  const DataType dtype = cx.dtype(0);
  if (!dtype.is_float()) cx.cast_inputs(dtype, f64);
  return {cx.cast(Sampler(cx).run(), dtype)};
}

// The product of theta [N, n, n + 1] and the coordinates (x, y, z, 1) of every place, from -1 to 1.
Operands affine_grid(NodeContext& cx) {
  const Operand theta = cx.in(0);
  const Dims given = cx.elements(cx.in(1));
  if (given.size() != 4 && given.size() != 5)
    cx.invalid(cat(given.size(), " sizes"), "4 or 5: batch, channels and 2 or 3 spatial sizes");
  if (cx.rank(theta) != 3) cx.invalid(cat("theta of rank ", cx.rank(theta)), "3");
  const Dims sizes(given.begin() + 2, given.end());
  const auto n = static_cast<int64_t>(sizes.size());
  const Dims matrices = {given[0], n, n + 1}, stated = cx.dims(theta);
  for (size_t i = 0; i < 3; ++i) {
    cx.b.check(CheckKind::kEqual, stated[i], matrices[i],
               cat("axis ", i, " of theta for these sizes"));
  }
  const bool align = cx.attr_bool("align_corners", false);
  const Dim places = product(sizes);
  Operands rows;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    // (2 i - (size - 1)) / size, or / (size - 1) such that the first and last are -1 and 1.
    const Dim& size = sizes[axis];
    const Operand i =
        cx.op("range", {cx.scalar(f64, 0), cx.scalar(f64, 2)}, attrs({{"count", size}}));
    const Operand last = cx.cast(cx.dim_scalar(size - 1), f64);
    const Operand one = cx.scalar(f64, 1);
    const Operand span = align ? cx.op("maximum", {last, one}) : cx.add(last, one);
    Dims along(sizes.size(), Dim(1));
    along[axis] = size;
    const Operand coordinate = cx.reshape(cx.div(cx.sub(i, last), span), along);
    rows.push_back(cx.reshape(cx.expand(coordinate, sizes), {1, places}));
  }
  rows.push_back(cx.full(f64, 1, {1, places}));
  const Operand base = cx.cast(cx.concat(rows, 0), cx.dtype(theta));
  const Operand grid =
      cx.transpose(cx.op("matmul", {theta, cx.reshape(base, {1, n + 1, places})}), {0, 2, 1});
  Dims result = sizes;
  result.insert(result.begin(), given[0]);
  result.push_back(n);
  return {cx.reshape(grid, result)};
}

// How often each region is sampled along y and x per result element, i64[regions, 2]: as often as
// it has pixels there.
Operand adaptive_samples(NodeContext& cx, const Dims& sizes, double scale, bool half_pixel) {
  const Operand rois = cx.cast(cx.in(1), cx.dtype(1) == f64 ? f64 : f32);
  const Dim regions = cx.dims(1)[0];
  auto side = [&](int64_t k) { return cx.slice(rois, 1, k, 1); };
  Operands counts;
  for (int64_t axis : {0, 1}) {  // y, x of (x1, y1, x2, y2)
    Operand length = cx.mul(cx.sub(side(3 - axis), side(1 - axis)), cx.scalar_like(rois, scale));
    if (!half_pixel) length = cx.op("maximum", {length, cx.scalar_like(rois, 1)});
    const Operand size = cx.cast(cx.dim_scalar(sizes[static_cast<size_t>(axis)]), cx.dtype(rois));
    counts.push_back(cx.cast(cx.op("ceil", {cx.div(length, size)}), i64));
  }
  return cx.op("maximum", {cx.concat(counts, 1), cx.integer(0)});
}

Operands roi_align(NodeContext& cx) {
  for (size_t i : {0, 1, 2}) {
    const int64_t rank = i == 0 ? 4 : i == 1 ? 2 : 1;
    if (cx.rank(i) != rank)
      cx.invalid(cat("operand ", i, ", counted from 0, of rank ", cx.rank(i)), cat(rank));
  }
  const std::string mode = cx.attr_string("mode", "avg");
  if (mode != "avg" && mode != "max") cx.invalid(cat("mode=", mode), "avg or max");
  const std::string how = cx.attr_string("coordinate_transformation_mode", "half_pixel");
  if (how != "half_pixel" && how != "output_half_pixel") {
    cx.invalid(cat("coordinate_transformation_mode=", how), "half_pixel or output_half_pixel");
  }
  const bool half_pixel = cx.version() >= 16 && how == "half_pixel";
  const int64_t ratio = cx.attr_int("sampling_ratio", 0), height = cx.attr_int("output_height", 1),
                width = cx.attr_int("output_width", 1);
  constexpr int64_t kMost = 1 << 20;  // far above any use
  if (ratio < 0 || ratio > kMost) cx.invalid(cat("sampling_ratio=", ratio), cat("0 to ", kMost));
  if (height < 1 || width < 1)
    cx.invalid(cat("a result of ", height, " x ", width), "1 x 1 or more");
  const double scale = cx.attr_float("spatial_scale", 1);
  const Dims sizes = {height, width};
  Dims samples = {ratio, ratio};
  Operand counts;
  if (ratio == 0) {
    counts = adaptive_samples(cx, sizes, scale, half_pixel);
    // The reduction of no regions is the least integer.
    const Operand most = cx.reduce("reduce_max", counts, {0}, false);
    samples = cx.elements(cx.op("maximum", {most, cx.integer(0)}));
    for (const Dim& n : samples) {
      cx.b.check(CheckKind::kLessEqual, n, kMost, "samples of a region along one axis");
    }
  }
  return {cx.op("roi_align", {cx.in(0), cx.in(1), cx.in(2), counts},
                attrs({{"sizes", attr_dims(sizes)},
                       {"samples", attr_dims(samples)},
                       {"scale", scale},
                       {"half_pixel", half_pixel},
                       {"mode", String(mode)}}))};
}

}  // namespace

void register_sampling(OpTable& t) {
  t.add("GridSample", 16, grid_sample);
  t.add("AffineGrid", 20, affine_grid);
  t.add("RoiAlign", 10, roi_align);
}

}  // namespace tenon::onnx
