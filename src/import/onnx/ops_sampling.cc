// Sampling at computed positions: GridSample.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

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
    };
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
  return {Sampler(cx).run()};
}

}  // namespace

void register_sampling(OpTable& t) {
  t.add("GridSample", 16, grid_sample);
}

}  // namespace tenon::onnx
