// Fourier transforms and what goes with them.

#include <cmath>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;
using graph::CheckKind;

// The size that an operand with one element gives.
Dim size_of(NodeContext& cx, size_t i, const char* what) {
  const Dims given = cx.elements(cx.in(i), 1);
  if (given.size() != 1) cx.invalid(cat(what, " of ", given.size(), " elements"), "one");
  return given[0];
}

// The triangles of a mel filter bank: column i rises from bin i to bin i + 1 and falls to bin
// i + 2, where bins lie at equal distances on the mel scale.
Operands mel_weight_matrix(NodeContext& cx) {
  const DataType dtype = cx.attr_dtype("output_datatype", f32);
  const Dim bands = size_of(cx, 0, "num_mel_bins"), length = size_of(cx, 1, "dft_length");
  const Dim rows = floordiv(length, 2) + 1;
  auto number = [&](double v) { return cx.scalar(f64, v); };
  auto scalar = [&](size_t i) { return cx.reshape(cx.cast(cx.in(i), f64), {}); };
  const double per_decade = 2595, corner = 700;
  auto mel = [&](const Operand& hertz) {
    const Operand ratio = cx.add(number(1), cx.div(hertz, number(corner)));
    return cx.mul(cx.op("log", {ratio}), number(per_decade / std::log(10)));
  };
  const Operand low = mel(scalar(3)), high = mel(scalar(4));
  const Operand step = cx.div(cx.sub(high, low), cx.cast(cx.dim_scalar(bands + 2), f64));
  const Operand i = cx.op("range", {number(0), number(1)}, attrs({{"count", bands + 2}}));
  const Operand at = cx.add(cx.mul(i, step), low);
  const Operand ratio = cx.op("exp", {cx.mul(at, number(std::log(10) / per_decade))});
  const Operand hertz = cx.mul(cx.sub(ratio, number(1)), number(corner));
  const Operand scaled = cx.mul(hertz, cx.cast(cx.dim_scalar(length + 1), f64));
  const Operand bins = cx.op("floor", {cx.div(scaled, scalar(2))});
  auto bin = [&](int64_t first) { return cx.reshape(cx.slice(bins, 0, first, bands), {1, bands}); };
  const Operand left = bin(0), center = bin(1), right = bin(2);
  const Operand row =
      cx.reshape(cx.op("range", {number(0), number(1)}, attrs({{"count", rows}})), {rows, 1});
  auto both = [&](const Operand& a, const Operand& b) { return cx.op("logical_and", {a, b}); };
  auto at_most = [&](const Operand& a, const Operand& b) { return cx.op("less_equal", {a, b}); };
  // Bins that coincide rise, or fall, in no steps; the peak stays.
  const Operand flat = cx.op("equal", {left, center});
  const Operand rise =
      cx.op("where", {flat, number(1), cx.div(cx.sub(row, left), cx.sub(center, left))});
  const Operand fall = cx.div(cx.sub(right, row), cx.sub(right, center));
  const Operand falls = both(at_most(center, row), cx.op("less", {row, right}));
  const Operand rises = both(at_most(left, row), at_most(row, center));
  const Operand rest = cx.op("where", {rises, rise, number(0)});
  return {cx.cast(cx.op("where", {falls, fall, rest}), dtype)};
}

// The transform of x along an axis other than the last, which has the parts of numbers.
Operand transform(NodeContext& cx, const Operand& x, int64_t axis, const Dim& length, bool inverse,
                  bool onesided) {
  return cx.op(
      "dft", {x},
      attrs({{"length", length}, {"axis", axis}, {"inverse", inverse}, {"onesided", onesided}}));
}

void check_parts(NodeContext& cx, const Dims& dims) {
  const auto parts = dims.back().as_const();
  if (parts && *parts != 1 && *parts != 2)
    cx.invalid(cat("numbers of ", *parts, " parts"), "1 or 2: the size of the last axis");
}

// The axis is an attribute before version 20 and an operand since.
Operands dft(NodeContext& cx) {
  const Dims dims = cx.dims(0);
  if (dims.size() < 2) cx.invalid(cat("an operand of rank ", dims.size()), "2 or more");
  check_parts(cx, dims);
  const Operand x = cx.in(0);
  const bool inverse = cx.attr_bool("inverse", false), onesided = cx.attr_bool("onesided", false);
  const auto rank = static_cast<int64_t>(dims.size());
  auto length_of = [&](int64_t axis) {
    const Dim size = dims[static_cast<size_t>(axis)];
    return inverse && onesided ? (size - 1) * 2 : size;
  };
  std::optional<Dim> stated;
  if (cx.has(1)) stated = size_of(cx, 1, "a dft_length");
  auto too_short = [&](int64_t axis) {
    const auto length = stated.value_or(length_of(axis)).as_const();
    return length && *length < 1;
  };
  auto along = [&](int64_t axis) {
    return transform(cx, x, axis, stated.value_or(length_of(axis)), inverse, onesided);
  };
  auto checked = [&](int64_t axis) {
    if (axis == rank - 1) cx.invalid(cat("axis ", axis, ", the parts of numbers"), "another axis");
    if (too_short(axis))
      cx.invalid(cat("a dft_length of ", stated.value_or(length_of(axis))), "1 or more");
    return Operands{along(axis)};
  };
  if (cx.version() < 20) return checked(cx.axis(cx.attr_int("axis", 1), rank));
  if (!cx.has(2)) return checked(rank - 2);
  if (auto axis = cx.ints(cx.in(2))) {
    if (axis->size() != 1) cx.invalid(cat("an axis of ", axis->size(), " elements"), "one");
    return checked(cx.axis((*axis)[0], rank));
  }
  Ints candidates = NodeContext::axes_below(rank - 1);
  std::erase_if(candidates, too_short);
  if (candidates.empty()) return checked(rank - 2);
  return {cx.for_axis(cx.in(2), rank, candidates, along)};
}

// Frames of the signal [batch, length, parts], `step` apart, times the window, transformed. PyTorch
// leaves the last axis of real signals out.
Operands stft(NodeContext& cx) {
  Dims dims = cx.dims(0);
  Operand x = cx.in(0);
  if (dims.size() == 2) {
    dims.emplace_back(1);
    x = cx.reshape(x, dims);
  }
  if (dims.size() != 3) cx.invalid(cat("an operand of rank ", dims.size()), "2 or 3");
  check_parts(cx, dims);
  const Operand window = cx.opt(2);
  const Dim step = size_of(cx, 1, "a frame_step");
  if (auto c = step.as_const(); c && *c < 1) cx.invalid(cat("a frame_step of ", *c), "1 or more");
  cx.b.check(CheckKind::kLessEqual, 1, step, "frame_step is at least 1");
  Dim length = dims[1];
  if (window) {
    if (cx.rank(window) != 1) cx.invalid(cat("a window of rank ", cx.rank(window)), "1");
    length = cx.dims(window)[0];
  }
  if (cx.has(3)) length = size_of(cx, 3, "a frame_length");
  if (auto c = length.as_const(); c && *c < 1)
    cx.invalid(cat("a frame_length of ", *c), "1 or more");
  if (window) {
    cx.b.check(CheckKind::kEqual, cx.dims(window)[0], length, "size of window and frame_length");
  }
  cx.b.check(CheckKind::kLessEqual, length, dims[1], "frame_length and length of the signal");
  const Dim frames = floordiv(dims[1] - length, step) + 1;
  auto range = [&](const Operand& by, const Dim& count, const Dims& shape) {
    return cx.reshape(cx.op("range", {cx.integer(0), by}, attrs({{"count", count}})), shape);
  };
  const Operand places = cx.add(range(cx.dim_scalar(step), frames, {frames, 1}),
                                range(cx.integer(1), length, {1, length}));
  Operand framed = cx.op("gather", {x, places}, attrs({{"axis", 1}}));
  if (window) framed = cx.mul(framed, cx.reshape(cx.cast(window, cx.dtype(x)), {length, 1}));
  return {transform(cx, framed, 2, length, false, cx.attr_bool("onesided", true))};
}

}  // namespace

void register_signal(OpTable& t) {
  t.add("DFT", 17, widened<dft>);
  t.add("STFT", 17, widened<stft>);
  t.add("MelWeightMatrix", 17, mel_weight_matrix);
}

}  // namespace tenon::onnx
