#include "range_maker.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "object/tensor.h"

namespace tenon::random_programs {

using namespace graph;  // NOLINT: this file uses only graph IR

graph::Module RangeMaker::make() {
  for (int64_t count = r_.between(1, 2); count > 0; --count) {
    const Shape shape = r_.coin() ? Shape{1, r_.between(1, 3), 4, 4}
                                  : Shape{r_.between(1, 2), r_.between(1, 4), r_.between(2, 6)};
    const Operand x = b_.param(cat("x", values_.size()), tensor_type(f32, to_dims(shape)));
    inputs_.emplace_back(numbers(shape, 1));
    put(x, shape, bound_of(inputs_.back().as<Tensor>()));
  }
  for (int64_t count = r_.between(2, quantises_ ? 10 : 7); count > 0; --count) step();
  std::vector<Operand> results;
  for (const Value& v : values_) {
    if (&v == &values_.back() || r_.between(0, 3) == 0) results.push_back(v.x);
  }
  results.insert(results.end(), magnitudes_.begin(), magnitudes_.end());
  Map<String, FunctionRef> functions;
  functions.set("main", b_.finish("main", results.size() == 1 ? results[0] : b_.tuple(results)));
  return make_module(functions);
}

float RangeMaker::number(double bound) {
  static const std::vector<float> kAll = {1e-42F, 1e-38F, 1e-30F, 1e-20F, 1e-8F, 0.3F,  1,
                                          1,      7,      1e5F,   1e10F,  1e20F, 1e30F, 1e36F};
  // Those that quantise_operators rewrites, mostly.
  static const std::vector<float> kModerate = {1e-12F, 1e-8F, 0.02F, 0.3F, 1, 7, 1e5F};
  float v = 0;
  do {
    const bool is_any = !quantises_ || r_.between(0, 15) == 0;
    v = r_.pick(is_any ? kAll : kModerate) * r_.pick<float>({1, 1.5, 1.9375, -1});
  } while (std::fabs(v) * bound > kGreatest);
  return r_.between(0, 11) == 0 ? 0 : v;
}

Tensor RangeMaker::numbers(const Shape& shape, double bound) {
  const int64_t kind = r_.between(0, 3);
  const float like = number(bound);
  std::vector<float> v(static_cast<size_t>(count_of(shape)));
  for (float& f : v) f = kind == 0 ? number(bound) : kind == 1 ? near(like) : part_of(like);
  return Tensor::copy_of<float>(shape, f32, v);
}

int64_t RangeMaker::count_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

double RangeMaker::bound_of(const Tensor& t) {
  double bound = 0;
  for (int64_t i = 0; i < t.count(); ++i) {
    bound = std::max(bound, static_cast<double>(std::fabs(t.data_as<float>()[i])));
  }
  return bound;
}

Operand RangeMaker::scalar(float v) {
  return constant(Tensor::copy_of<float>({}, f32, std::span(&v, 1)));
}

RangeMaker::Shape RangeMaker::shape_of(const Operand& x) {
  Shape shape;
  for (const Dim& d : type_as<TensorType>(type_of(x))->dims) shape.push_back(*d.as_const());
  return shape;
}

Operand RangeMaker::changes(const Shape& shape, double by, double around) {
  std::vector<float> v(static_cast<size_t>(count_of(shape)));
  for (float& f : v) {
    f = static_cast<float>(around + by * static_cast<double>(shakes_->between(-4, 4)));
  }
  return constant(Tensor::copy_of<float>(shape, f32, v));
}

Operand RangeMaker::shaken(const Operand& x) {
  const auto* type = type_as<TensorType>(type_of(x));
  if (!shakes_ || !type || type->dtype != f32) return x;
  const Shape shape = shape_of(x);
  const Operand changed =
      b_.op("add", {b_.op("mul", {x, changes(shape, kUnit, 1)}), changes(shape, 0x1p-149, 0)});
  return b_.op("where", {b_.op("equal", {x, scalar(0)}), x, changed});
}

Operand RangeMaker::op(std::string_view name, std::vector<Operand> args, const Attrs& how) {
  static constexpr auto kSums = {"matmul",     "conv",        "conv_transpose",
                                 "reduce_sum", "reduce_mean", "avg_pool"};
  if (shakes_ && std::ranges::find(kSums, name) != kSums.end()) {
    std::vector<Operand> sizes;
    for (Operand& arg : args) arg = shaken(arg);
    for (const Operand& arg : args) sizes.push_back(arg ? b_.op("abs", {arg}) : arg);
    magnitudes_.push_back(b_.op(name, sizes, how));
  }
  return shaken(b_.op(name, args, how));
}

Operand RangeMaker::softmax(const Operand& x) {
  constexpr float kSteep = 1e4F;
  const Operand y = op("softmax", {x}, attrs({{"axis", int64_t{-1}}}));
  if (!shakes_) return y;
  const Attrs last = attrs({{"axes", attr_ints({-1})}, {"keepdims", true}});
  const Operand greatest = b_.op("reduce_max", {b_.op("abs", {x})}, last);
  const Operand steep = b_.op("less", {scalar(kSteep), greatest});
  return b_.op("add", {y, b_.op("where", {steep, changes(shape_of(x), 0.25, 0), scalar(0)})});
}

RangeMaker::Value RangeMaker::pick() {
  const int64_t last = std::ssize(values_) - 1;
  return values_[static_cast<size_t>(std::max(r_.between(0, last), r_.between(0, last)))];
}

std::optional<RangeMaker::Value> RangeMaker::pick_of_rank(size_t rank) {
  std::vector<Value> fitting;
  for (const Value& v : values_) {
    if (v.shape.size() == rank) fitting.push_back(v);
  }
  if (fitting.empty()) return std::nullopt;
  return r_.pick(fitting);
}

Operand RangeMaker::along_channels(const Value& v, const Tensor& t) {
  if (v.shape.size() == 3) return constant(t);
  return b_.op("reshape", {constant(t)}, attrs({{"shape", attr_dims({Dim(t.count()), 1, 1})}}));
}

}  // namespace tenon::random_programs
