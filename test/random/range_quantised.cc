// Steps that add what quantised models have.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "graph/ir/rewrite.h"
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

Tensor RangeMaker::integers(const Shape& shape, DataType dtype) {
  const int64_t steps = int64_t{1} << dtype.bits;
  const int64_t least = dtype.is_signed_int() ? -steps / 2 : 0;
  std::vector<int8_t> bytes(static_cast<size_t>(count_of(shape)));
  for (int8_t& b : bytes) b = static_cast<int8_t>(r_.between(least, least + steps - 1));
  return Tensor::copy_of<int8_t>(shape, dtype, bytes);
}

RangeMaker::Quantisation RangeMaker::quantisation(double bound, const std::optional<Shape>& each,
                                                  const std::vector<DataType>& dtypes) {
  Quantisation how;
  how.dtype = r_.pick(dtypes);
  const Shape shape = each ? *each : r_.coin() ? Shape{} : Shape{1};
  std::vector<float> scales(static_cast<size_t>(count_of(shape)));
  for (float& scale : scales) scale = scale_for(bound);
  how.scale = constant(Tensor::copy_of<float>(shape, f32, scales));
  if (r_.between(0, 2) > 0) how.zero = constant(integers(shape, how.dtype));
  how.bound = kSteps * *std::ranges::max_element(scales);
  return how;
}

RangeMaker::Quantisation RangeMaker::nearly(const Quantisation& how) {
  Quantisation other = how;
  switch (r_.between(0, 5)) {
    case 0:
      other.zero =
          how.zero && r_.coin() ? Operand() : constant(integers(shape_of(how.scale), how.dtype));
      break;
    case 1: {
      const Tensor known = constant_tensor(how.scale);
      const float* const begin = known.data_as<float>();
      std::vector<float> scales(begin, begin + known.count());
      for (float& scale : scales) scale *= 1.0625F;
      other.scale = constant(Tensor::copy_of<float>(shape_of(how.scale), f32, scales));
      other.bound *= 1.0625;
      break;
    }
    case 2:
      other.dtype = how.dtype == u8 ? i8 : u8;
      if (how.zero) other.zero = constant(integers(shape_of(how.scale), other.dtype));
      break;
    default:
      break;
  }
  return other;
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
  Quantisation how =
      quantisation(v.bound, by_channel ? std::optional(Shape{channels(v)}) : std::nullopt);
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

// Operators that only move or select elements, mostly between the same parameters.
void RangeMaker::move_quantised() {
  const auto fitting = [&] {
    std::vector<Value> found;
    for (const Value& v : values_) {
      if (v.quantised && v.quantised->axis == 0) found.push_back(v);
    }
    return found;
  };
  if (fitting().empty()) quantise();
  if (fitting().empty()) return;
  const Value v = r_.pick(fitting());
  Value moved = v;
  const auto swap_last = [&] {
    std::swap(moved.shape.back(), moved.shape[moved.shape.size() - 2]);
  };
  switch (r_.between(0, 5)) {
    case 0:
      swap_last();
      moved.x = transposed(v.x);
      break;
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
    case 3:
      swap_last();
      moved.x = b_.op("reshape", {v.x}, attrs({{"shape", attr_dims(to_dims(moved.shape))}}));
      break;
    case 4:
      if (v.shape[0] != 1) return;
      moved.shape[0] = 2;
      moved.x = b_.op("expand", {v.x}, attrs({{"shape", attr_dims(to_dims(moved.shape))}}));
      break;
    default:
      moved.x = b_.op("relu", {v.x});
  }
  const Quantisation how = nearly(*v.quantised);
  if (how.bound <= kGreatest) quantise_with(moved, how);
}

// With the last two axes swapped.
RangeMaker::Operand RangeMaker::transposed(const Operand& x) {
  std::vector<int64_t> permutation(shape_of(x).size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return b_.op("transpose", {x}, attrs({{"perm", attr_ints(permutation)}}));
}

// The product of what dynamic_quantize_linear gives, as dynamically quantised models have it.
void RangeMaker::product_of_bytes() {
  const std::optional<Value> found = pick_of_rank(3);
  if (!found) return;
  const Value v = *found;
  const int64_t columns = r_.between(1, 5);
  const double bound = v.bound * static_cast<double>(v.shape[2]);
  const Quantisation how =
      quantisation(1, r_.coin() ? std::optional(Shape{columns}) : std::nullopt);
  if (bound * how.bound > kGreatest) return;
  const std::vector<Operand> x = b_.ops("dynamic_quantize_linear", {shaken(v.x)});
  const Operand w = constant(integers({v.shape[2], columns}, how.dtype));
  const Operand sums = b_.op("matmul_integer", {x[0], w, x[2], how.zero});
  const Operand floats = b_.op("cast", {sums}, attrs({{"dtype", Any(f32)}}));
  const Operand scale = op("mul", {x[1], how.scale});
  put(op("mul", {floats, scale}), {v.shape[0], v.shape[1], columns}, bound * how.bound);
}

RangeMaker::Weights RangeMaker::weights(const Value& v, const Shape& shape, int64_t axis,
                                        double terms) {
  if (quantises_ && r_.between(0, 7) > 0) {
    const Weights w = quantised_weights(v, shape, axis, terms);
    if (w.bound * v.bound * terms <= kGreatest) return w;
  }
  const Tensor t = numbers(shape, v.bound * terms);
  return {constant(t), bound_of(t)};
}

RangeMaker::Weights RangeMaker::quantised_weights(const Value& v, const Shape& shape, int64_t axis,
                                                  double terms) {
  constexpr double kSmall = 1e-12, kSubnormal = 1e-40;
  double bound = std::min(1.0, kGreatest / (v.bound * terms));
  const double scale = v.quantised ? v.quantised->bound / kSteps : 1;
  if (scale < kSmall && r_.coin()) bound = kSteps / 2 * kSubnormal / scale;
  const bool transposes = shape.size() < 4 && r_.between(0, 2) == 0;
  const auto rank = std::ssize(shape);
  Shape stored = shape;
  if (transposes) {
    std::swap(stored[stored.size() - 1], stored[stored.size() - 2]);
    axis = rank - 2;
  }
  if (r_.between(0, 3) == 0) axis = r_.between(0, rank - 1);  // not that of the results
  const int64_t size = stored[static_cast<size_t>(axis)];
  // Of all elements, of an index, or of a block.
  std::optional<Shape> parameters;
  int64_t block = 0;
  const int64_t granularity = r_.between(0, 8);
  if (granularity == 0) {
    block = r_.between(1, size);
    parameters = stored;
    (*parameters)[static_cast<size_t>(axis)] = (size + block - 1) / block;
  } else if (granularity > 4) {
    parameters = Shape{size};
  }
  static const std::vector<DataType> kDtypes = {i8, i8, i8, u8, u8, u8, i4, u4};
  const Quantisation how = quantisation(bound, parameters, kDtypes);
  const int64_t named = r_.between(0, 3) == 0 ? axis - rank : axis;
  const Operand w =
      b_.op("dequantize_linear", {constant(integers(stored, how.dtype)), how.scale, how.zero},
            attrs({{"axis", named}, {"block_size", block}}));
  return {transposes ? transposed(w) : w, how.bound};
}

RangeMaker::Weights RangeMaker::bias(const Value& v) {
  if (quantises_ && r_.coin()) {
    std::vector<int32_t> numbers(static_cast<size_t>(channels(v)));
    for (int32_t& n : numbers) n = static_cast<int32_t>(r_.between(-1000, 1000));
    const Tensor t = Tensor::copy_of<int32_t>(Shape{channels(v)}, i32, numbers);
    const float scale = std::fabs(number(1000));
    return {b_.op("dequantize_linear", {constant(t), scalar(scale)}), 1000.0 * scale};
  }
  const Tensor t = per_channel(v, 1);
  return {constant(t), bound_of(t)};
}

}  // namespace tenon::random_programs
