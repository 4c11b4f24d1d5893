// Steps that add what quantised models have.
#include <algorithm>
#include <cmath>
#include <utility>

#include "object/tensor.h"
#include "range_maker.h"

namespace tenon::random_programs {

using namespace graph;  // NOLINT: this file uses only graph IR

namespace {

constexpr double kSteps = 255;  // of a byte

}  // namespace

// Mostly one that uses the whole range of a byte.
float RangeMaker::scale_for(double bound) {
  while (r_.between(0, 3) == 0) {
    const float any = std::fabs(number(kSteps));
    if (any > 0 && bound / any < kGreatest) return any;
  }
  const double fitting = bound / 127 * r_.pick<double>({1, 1, 0.5, 1.0625});
  return static_cast<float>(std::max(fitting, bound / kGreatest + 1e-42));
}

Tensor RangeMaker::integers(const Shape& shape, DataType dtype, int64_t least, int64_t greatest) {
  std::vector<int8_t> bytes(static_cast<size_t>(count_of(shape)));
  for (int8_t& b : bytes) b = static_cast<int8_t>(r_.between(least, greatest));
  return Tensor::copy_of<int8_t>(shape, dtype, bytes);
}

RangeMaker::Quantisation RangeMaker::quantisation(double bound, std::optional<int64_t> count) {
  Quantisation how;
  how.dtype = r_.coin() ? u8 : i8;
  std::vector<float> scales(static_cast<size_t>(count.value_or(1)));
  for (float& scale : scales) scale = scale_for(bound);
  const Shape shape = count ? Shape{*count} : r_.coin() ? Shape{} : Shape{1};
  how.scale = constant(Tensor::copy_of<float>(shape, f32, scales));
  if (r_.between(0, 2) > 0) {
    const int64_t least = how.dtype == u8 ? 0 : -128;
    how.zero = constant(integers(shape, how.dtype, least, least + 255));
  }
  how.bound = kSteps * *std::ranges::max_element(scales);
  return how;
}

void RangeMaker::quantise_with(const Value& v, const Quantisation& how) {
  const Attrs axis = attrs({{"axis", how.axis}});
  const Operand y = b_.op("quantize_linear", {shaken(v.x), how.scale, how.zero},
                          attrs({{"axis", how.axis}, {"dtype", Any(how.dtype)}}));
  put(op("dequantize_linear", {y, how.scale, how.zero}, axis), v.shape, how.bound);
  values_.back().quantised = how;
}

void RangeMaker::quantise(const Value& v) {
  const bool by_channel = r_.between(0, 3) == 0;
  Quantisation how = quantisation(v.bound, by_channel ? std::optional(channels(v)) : std::nullopt);
  if (how.bound > kGreatest) return;
  if (by_channel) how.axis = channel_axis(v);
  quantise_with(v, how);
}

std::optional<RangeMaker::Value> RangeMaker::pick_for_product(size_t rank) {
  std::optional<Value> v = pick_of_rank(rank);
  if (!quantises_ || !v || v->quantised) return v;
  const Quantisation how = quantisation(v->bound, std::nullopt);
  if (how.bound > kGreatest) return std::nullopt;
  quantise_with(*v, how);
  return values_.back();
}

// Operators that only move or select elements, between the same parameters.
void RangeMaker::move_quantised() {
  std::vector<Value> fitting;
  for (const Value& v : values_) {
    if (v.quantised && v.quantised->axis == 0) fitting.push_back(v);
  }
  if (fitting.empty()) return;
  const Value v = r_.pick(fitting);
  Value moved = v;
  switch (r_.between(0, 3)) {
    case 0: {
      std::vector<int64_t> permutation(v.shape.size());
      for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
      std::swap(permutation.back(), permutation[permutation.size() - 2]);
      std::swap(moved.shape.back(), moved.shape[moved.shape.size() - 2]);
      moved.x = b_.op("transpose", {v.x}, attrs({{"perm", attr_ints(permutation)}}));
      break;
    }
    case 1: {
      std::vector<Dim> starts(v.shape.size(), Dim(0));
      starts.back() = Dim(r_.between(0, v.shape.back() - 1));
      moved.shape.back() -= *starts.back().as_const();
      moved.x =
          b_.op("slice", {v.x},
                attrs({{"starts", attr_dims(starts)}, {"sizes", attr_dims(to_dims(moved.shape))}}));
      break;
    }
    case 2:
      if (v.shape.size() != 4) return;
      moved.x = b_.op("max_pool", {v.x},
                      attrs({{"kernel", attr_ints({3, 3})}, {"pads", attr_dims({1, 1, 1, 1})}}));
      break;
    default:
      moved.x = b_.op("relu", {v.x});
  }
  quantise_with(moved, *v.quantised);
}

// The product of what dynamic_quantize_linear gives, as dynamically quantised models have it.
void RangeMaker::product_of_bytes() {
  const std::optional<Value> found = pick_of_rank(3);
  if (!found) return;
  const Value v = *found;
  const int64_t columns = r_.between(1, 5);
  const double bound = v.bound * static_cast<double>(v.shape[2]);
  const Quantisation how = quantisation(1, r_.coin() ? std::optional(columns) : std::nullopt);
  if (bound * how.bound > kGreatest) return;
  const std::vector<Operand> x = b_.ops("dynamic_quantize_linear", {shaken(v.x)});
  const Operand w = constant(integers({v.shape[2], columns}, how.dtype, -128, 127));
  const Operand sums = b_.op("matmul_integer", {x[0], w, x[2], how.zero});
  const Operand floats = b_.op("cast", {sums}, attrs({{"dtype", Any(f32)}}));
  const Operand scale = op("mul", {x[1], how.scale});
  put(op("mul", {floats, scale}), {v.shape[0], v.shape[1], columns}, bound * how.bound);
}

RangeMaker::Weights RangeMaker::weights(const Value& v, const Shape& shape, int64_t axis,
                                        double terms) {
  if (quantises_ && r_.between(0, 7) > 0) {
    const Weights w = quantised_weights(shape, axis, v.bound * terms);
    if (w.bound * v.bound * terms <= kGreatest) return w;
  }
  const Tensor t = numbers(shape, v.bound * terms);
  return {constant(t), bound_of(t)};
}

RangeMaker::Weights RangeMaker::quantised_weights(const Shape& shape, int64_t axis, double bound) {
  const bool transposes = shape.size() == 2 && r_.between(0, 2) == 0;
  Shape stored = shape;
  if (transposes) {
    std::swap(stored[0], stored[1]);
    axis = 1 - axis;
  }
  const bool by_channel = r_.coin();
  Quantisation how =
      quantisation(std::min(1.0, kGreatest / bound),
                   by_channel ? std::optional(stored[static_cast<size_t>(axis)]) : std::nullopt);
  const Tensor bytes = integers(stored, how.dtype, -128, 127);
  Operand w =
      op("dequantize_linear", {constant(bytes), how.scale, how.zero}, attrs({{"axis", axis}}));
  if (transposes) w = b_.op("transpose", {w}, attrs({{"perm", attr_ints({1, 0})}}));
  return {w, how.bound};
}

}  // namespace tenon::random_programs
