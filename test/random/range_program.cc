#include "range_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "check_program.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/builder.h"
#include "graph/op/rule.h"
#include "object/tensor.h"
#include "weighted.h"

namespace tenon::random_programs {
namespace {

using namespace graph;  // NOLINT: this file uses only graph IR

constexpr double kGreatest = 1e37;  // of any value
constexpr double kUnit = 0x1p-23;   // in the last place, relative
constexpr int kPerturbed = 5;       // runs
// Rounding errors add up where the perturbations of one run happen to cancel.
constexpr double kSlack = 16;

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

// Makes @main of a program, as it is or perturbed.
class RangeMaker {
 public:
  // `shakes` is what perturbs, or null.
  RangeMaker(uint64_t seed, Random* shakes) : r_(seed), shakes_(shakes), b_(signatures_) {
    b_.at(Span::node("main"));
  }

  graph::Module make() {
    for (int64_t count = r_.between(1, 2); count > 0; --count) {
      const std::vector<int64_t> shape =
          r_.coin() ? std::vector<int64_t>{1, r_.between(1, 3), 4, 4}
                    : std::vector<int64_t>{r_.between(1, 2), r_.between(1, 4), r_.between(2, 6)};
      const Operand x = b_.param(cat("x", values_.size()), tensor_type(f32, to_dims(shape)));
      inputs_.emplace_back(numbers(shape, 1));
      values_.push_back({x, shape, bound_of(inputs_.back().as<Tensor>())});
    }
    for (int64_t count = r_.between(2, 7); count > 0; --count) step();
    std::vector<Operand> results = {values_.back().x};
    if (r_.coin()) results.push_back(values_[values_.size() / 2].x);
    results.insert(results.end(), magnitudes_.begin(), magnitudes_.end());
    Map<String, FunctionRef> functions;
    functions.set("main", b_.finish("main", results.size() == 1 ? results[0] : b_.tuple(results)));
    return make_module(functions);
  }

  const std::vector<Any>& inputs() const { return inputs_; }

 private:
  struct Value {
    Operand x;
    std::vector<int64_t> shape;
    double bound;  // of |x|
  };

  // ---- numbers ----

  // One of any magnitude, such that its product with `bound` is at most kGreatest.
  float number(double bound) {
    static const std::vector<float> kMagnitudes = {
        1e-42F, 1e-38F, 1e-30F, 1e-20F, 1e-8F, 0.3F, 1, 1, 7, 1e5F, 1e10F, 1e20F, 1e30F, 1e36F};
    float v = 0;
    do {
      v = r_.pick(kMagnitudes) * r_.pick<float>({1, 1.5, 1.9375, -1});
    } while (std::fabs(v) * bound > kGreatest);
    return r_.between(0, 11) == 0 ? 0 : v;
  }
  // Most tensors have elements of about one magnitude, as those of models do, or of nearly one
  // value.
  Tensor numbers(const std::vector<int64_t>& shape, double bound) {
    const int64_t kind = r_.between(0, 3);
    const float like = number(bound);
    std::vector<float> v(static_cast<size_t>(count_of(shape)));
    for (float& f : v) f = kind == 0 ? number(bound) : kind == 1 ? near(like) : part_of(like);
    return Tensor::copy_of<float>(shape, f32, v);
  }
  float near(float v) { return v * (1 + static_cast<float>(r_.between(-8, 8)) * 0x1p-18F); }
  float part_of(float v) { return v * static_cast<float>(r_.between(-8, 8)) / 8; }
  static double bound_of(const Tensor& t) {
    double bound = 0;
    for (int64_t i = 0; i < t.count(); ++i) {
      bound = std::max(bound, static_cast<double>(std::fabs(t.data_as<float>()[i])));
    }
    return bound;
  }
  static Operand scalar(float v) {
    return constant(Tensor::copy_of<float>({}, f32, std::span(&v, 1)));
  }

  // ---- operators, perturbed ----

  // Multiples of `by` from -4 to 4, plus `around`.
  Operand changes(const std::vector<int64_t>& shape, double by, double around) {
    std::vector<float> v(static_cast<size_t>(count_of(shape)));
    for (float& f : v) {
      f = static_cast<float>(around + by * static_cast<double>(shakes_->between(-4, 4)));
    }
    return constant(Tensor::copy_of<float>(shape, f32, v));
  }
  static std::vector<int64_t> shape_of(const Operand& x) {
    std::vector<int64_t> shape;
    for (const Dim& d : type_as<TensorType>(type_of(x))->dims) shape.push_back(*d.as_const());
    return shape;
  }

  // x with each element changed by up to 4 units in the last place, but zeros.
  Operand shaken(const Operand& x) {
    const auto* type = type_as<TensorType>(type_of(x));
    if (!shakes_ || !type || type->dtype != f32) return x;
    const std::vector<int64_t> shape = shape_of(x);
    const Operand changed =
        b_.op("add", {b_.op("mul", {x, changes(shape, kUnit, 1)}), changes(shape, 0x1p-149, 0)});
    return b_.op("where", {b_.op("equal", {x, scalar(0)}), x, changed});
  }

  // The rounding error of a sum is relative to its terms, of others to the result.
  Operand op(std::string_view name, std::vector<Operand> args, const Attrs& how = {}) {
    static constexpr auto kSums = {"matmul", "conv", "reduce_sum", "reduce_mean", "avg_pool"};
    if (shakes_ && std::ranges::find(kSums, name) != kSums.end()) {
      std::vector<Operand> sizes;
      for (Operand& arg : args) arg = shaken(arg);
      for (const Operand& arg : args) sizes.push_back(arg ? b_.op("abs", {arg}) : arg);
      magnitudes_.push_back(b_.op(name, sizes, how));
    }
    return shaken(b_.op(name, args, how));
  }

  // Among large numbers, rounding decides which is the greatest, and thus all weights.
  Operand softmax(const Operand& x) {
    constexpr float kSteep = 1e4F;
    const Operand y = op("softmax", {x}, attrs({{"axis", int64_t{-1}}}));
    if (!shakes_) return y;
    const Attrs last = attrs({{"axes", attr_ints({-1})}, {"keepdims", true}});
    const Operand greatest = b_.op("reduce_max", {b_.op("abs", {x})}, last);
    const Operand steep = b_.op("less", {scalar(kSteep), greatest});
    return b_.op("add", {y, b_.op("where", {steep, changes(shape_of(x), 0.25, 0), scalar(0)})});
  }

  void put(const Operand& x, std::vector<int64_t> shape, double bound) {
    values_.push_back({x, std::move(shape), bound});
  }

  // ---- choosing ----

  Value pick() {
    const int64_t last = std::ssize(values_) - 1;
    return values_[static_cast<size_t>(std::max(r_.between(0, last), r_.between(0, last)))];
  }
  std::optional<Value> pick_of_rank(size_t rank) {
    std::vector<Value> fitting;
    for (const Value& v : values_) {
      if (v.shape.size() == rank) fitting.push_back(v);
    }
    if (fitting.empty()) return std::nullopt;
    return r_.pick(fitting);
  }
  // Whose elements are per channel: the axis that normalisations and biases follow.
  static int64_t channels(const Value& v) { return v.shape.size() == 4 ? v.shape[1] : v.shape[2]; }
  Tensor per_channel(const Value& v, double bound) { return numbers({channels(v)}, bound); }
  // `t`, shaped to broadcast along the channels.
  Operand along_channels(const Value& v, const Tensor& t) {
    if (v.shape.size() == 3) return constant(t);
    return b_.op("reshape", {constant(t)}, attrs({{"shape", attr_dims({Dim(t.count()), 1, 1})}}));
  }

  // ---- steps ----

  void step() {
    static constexpr std::pair<int, void (RangeMaker::*)()> kSteps[] = {
        {2, &RangeMaker::factor},    {1, &RangeMaker::term},      {1, &RangeMaker::batch_norm},
        {1, &RangeMaker::bounded},   {3, &RangeMaker::convolve},  {1, &RangeMaker::product},
        {1, &RangeMaker::attention}, {1, &RangeMaker::normalise}, {1, &RangeMaker::join},
        {1, &RangeMaker::reduce},    {1, &RangeMaker::curved},    {1, &RangeMaker::pool},
        {1, &RangeMaker::clipped}};
    (this->*pick_weighted(r_, kSteps))();
  }

  void factor() {
    const Value v = pick();
    const bool divides = r_.between(0, 2) == 0;
    if (r_.coin()) {
      float by = number(divides ? 1 : v.bound);
      if (divides) {
        if (by == 0 || v.bound / std::fabs(by) > kGreatest) by = 3;
        return put(op("div", {v.x, scalar(by)}), v.shape, v.bound / std::fabs(by));
      }
      const bool swap = r_.coin();
      return put(op("mul", swap ? std::vector<Operand>{scalar(by), v.x}
                                : std::vector<Operand>{v.x, scalar(by)}),
                 v.shape, v.bound * std::fabs(by));
    }
    const Tensor by = per_channel(v, v.bound);
    put(op("mul", {v.x, along_channels(v, by)}), v.shape, v.bound * bound_of(by));
  }

  void term() {
    const Value v = pick();
    const Tensor by = r_.coin() ? per_channel(v, 1) : numbers(v.shape, 1);
    const Operand y = by.rank() == 1 ? along_channels(v, by) : constant(by);
    put(r_.coin() ? op("add", {v.x, y}) : op("sub", {v.x, y}), v.shape, v.bound + bound_of(by));
  }

  void batch_norm() {
    if (const std::optional<Value> found = pick_of_rank(4)) normalise_batch(*found);
  }
  void normalise_batch(const Value& v) {
    Tensor mean = per_channel(v, 1);
    if (r_.coin()) {
      float* of = mean.data_as<float>();
      for (int64_t i = 0; i < mean.count(); ++i) of[i] = near(static_cast<float>(v.bound));
    }
    Tensor variance = per_channel(v, 1);
    // 1e-12 keeps the factor below 1e6.
    const double epsilon = r_.pick<double>({1e-12, 1e-5, 1, 1e10});
    float* of = variance.data_as<float>();
    for (int64_t i = 0; i < variance.count(); ++i) of[i] = std::fabs(of[i]);
    const double normalised = (v.bound + bound_of(mean)) / std::sqrt(epsilon);
    if (normalised > kGreatest) return;
    const Tensor scale = per_channel(v, normalised), bias = per_channel(v, 1);
    const double bound = normalised * bound_of(scale) + bound_of(bias);
    if (!shakes_) {
      return put(b_.op("batch_norm",
                       {v.x, constant(scale), constant(bias), constant(mean), constant(variance)},
                       attrs({{"epsilon", epsilon}})),
                 v.shape, bound);
    }
    // Each operation of the definition is perturbed, and what is normalised, and the bias, by 1024
    // units: a fold may lose that much (docs/semantics.md).
    const auto lost = [&] { return changes(v.shape, 1024 * kUnit / 8, 0); };
    const Operand centred = op("sub", {v.x, along_channels(v, mean)});
    const Operand deviation =
        op("sqrt", {op("add", {along_channels(v, variance), scalar(static_cast<float>(epsilon))})});
    const Operand y = b_.op("add", {op("div", {centred, deviation}), lost()});
    const Operand scaled = op("mul", {y, along_channels(v, scale)});
    const Operand inexact = b_.op("mul", {along_channels(v, bias), lost()});
    put(b_.op("add", {op("add", {scaled, along_channels(v, bias)}), inexact}), v.shape, bound);
  }

  void bounded() {
    const Value v = pick();
    static const std::vector<const char*> kNames = {"tanh", "sigmoid", "sin", "atan"};
    put(op(r_.pick(kNames), {v.x}), v.shape, 2);
  }

  // Functions that are defined, or kept, on a part of the numbers.
  void curved() {
    const Value v = pick();
    switch (r_.between(0, 4)) {
      case 0:
        return put(op("exp", {op("minimum", {v.x, scalar(80)})}), v.shape, 6e34);
      case 1:
        return put(op("log", {op("add", {op("abs", {v.x}), scalar(1)})}), v.shape, 90);
      case 2:
        return put(op("sqrt", {op("abs", {v.x})}), v.shape, std::sqrt(v.bound));
      case 3:
        return put(op("div", {scalar(1), op("add", {op("abs", {v.x}), scalar(1e-3F)})}), v.shape,
                   1e3);
      default:  // x sigmoid(x)
        return put(op("mul", {v.x, op("sigmoid", {v.x})}), v.shape, v.bound);
    }
  }

  void clipped() {
    const Value v = pick();
    static const std::vector<const char*> kNames = {"relu", "abs", "neg"};
    if (r_.coin()) return put(op(r_.pick(kNames), {v.x}), v.shape, v.bound);
    const Operand by = scalar(number(1));
    put(op(r_.coin() ? "minimum" : "maximum", {v.x, by}), v.shape, kGreatest);
  }

  void convolve() {
    const std::optional<Value> found = pick_of_rank(4);
    if (!found) return;
    const Value& v = *found;
    const int64_t side = r_.coin() ? 3 : 1, out = r_.between(1, 3);
    const double terms = static_cast<double>(v.shape[1] * side * side);
    if (v.bound * terms > kGreatest) return;
    const Tensor weights = numbers({out, v.shape[1], side, side}, v.bound * terms);
    const int64_t pad = side / 2;
    Operand y = op("conv", {v.x, constant(weights), Operand()},
                   attrs({{"pads", attr_dims({pad, pad, pad, pad})}}));
    double bound = v.bound * terms * bound_of(weights);
    std::vector<int64_t> shape = v.shape;
    shape[1] = out;
    const Value sum{y, shape, bound};
    if (r_.between(0, 3) == 0) {
      const Tensor bias = per_channel(sum, 1);
      y = op("add", {y, along_channels(sum, bias)});
      bound += bound_of(bias);
    }
    put(y, shape, bound);
    if (r_.between(0, 2) > 0) normalise_batch(Value(values_.back()));
  }

  void product() {
    const std::optional<Value> found = pick_of_rank(3);
    if (!found) return;
    const Value& v = *found;
    const auto terms = static_cast<double>(v.shape[2]);
    if (v.bound * terms > kGreatest) return;
    const Tensor weights = numbers({v.shape[2], r_.between(1, 5)}, v.bound * terms);
    const std::vector<int64_t> shape = {v.shape[0], v.shape[1], weights.dim(1)};
    put(op("matmul", {v.x, constant(weights)}), shape, v.bound * terms * bound_of(weights));
  }

  void attention() {
    const std::optional<Value> found = pick_of_rank(3);
    if (!found) return;
    const Value& v = *found;
    const auto terms = static_cast<double>(v.shape[2]);
    Operand q = v.x;
    const Operand keys = op("transpose", {v.x}, attrs({{"perm", attr_ints({0, 2, 1})}}));
    double bound = v.bound;
    if (r_.coin()) {
      const float by = number(v.bound * v.bound * terms);
      q = op("mul", {q, scalar(by)});
      bound *= std::fabs(by);
    }
    bound *= v.bound * terms;
    if (bound > kGreatest) return;
    Operand scores = op("matmul", {q, keys});
    if (r_.between(0, 2) > 0) {
      const float by = number(bound);
      if (r_.coin() && by != 0 && bound / std::fabs(by) < kGreatest) {
        scores = op("div", {scores, scalar(by)});
      } else {
        scores = op("mul", {scores, scalar(by)});
      }
    }
    const Operand weights = softmax(scores);
    put(op("matmul", {weights, v.x}), v.shape, v.bound * 2);
  }

  void normalise() {
    const std::optional<Value> found = pick_of_rank(3);
    if (!found) return;
    const Value& v = *found;
    if (r_.between(0, 2) == 0) {
      return put(softmax(v.x), v.shape, 1);
    }
    // As exporters write it; combine_layer_norm finds it.
    if (v.bound > 1e17) return;
    const Attrs last = attrs({{"axes", attr_ints({-1})}, {"keepdims", true}});
    const Operand centred = op("sub", {v.x, op("reduce_mean", {v.x}, last)});
    const Operand variance = op("reduce_mean", {op("mul", {centred, centred})}, last);
    const float epsilon = r_.pick<float>({1e-12F, 1e-5F, 1});
    const Operand deviation = op("sqrt", {op("add", {variance, scalar(epsilon)})});
    const Operand y = op("div", {centred, deviation});
    const Tensor scale = per_channel(v, 4), bias = per_channel(v, 1);
    const Operand scaled = op("mul", {y, constant(scale)});
    put(op("add", {scaled, constant(bias)}), v.shape, 4 * bound_of(scale) + bound_of(bias));
  }

  // Two values of one shape.
  void join() {
    const Value v = pick();
    std::vector<Value> fitting;
    for (const Value& w : values_) {
      if (w.shape == v.shape) fitting.push_back(w);
    }
    const Value w = r_.pick(fitting);
    if (r_.coin() && v.bound * w.bound <= kGreatest) {
      return put(op("mul", {v.x, w.x}), v.shape, v.bound * w.bound);
    }
    put(op(r_.coin() ? "add" : "sub", {v.x, w.x}), v.shape, v.bound + w.bound);
  }

  void reduce() {
    const Value v = pick();
    const auto axis = r_.between(1, std::ssize(v.shape) - 1);
    const double terms = static_cast<double>(v.shape[static_cast<size_t>(axis)]);
    if (v.bound * terms > kGreatest) return;
    std::vector<int64_t> shape = v.shape;
    shape[static_cast<size_t>(axis)] = 1;
    static const std::vector<const char*> kNames = {"reduce_sum", "reduce_mean", "reduce_max"};
    put(op(r_.pick(kNames), {v.x}, attrs({{"axes", attr_ints({axis})}, {"keepdims", true}})), shape,
        v.bound * terms);
  }

  void pool() {
    const std::optional<Value> found = pick_of_rank(4);
    if (!found || found->shape[2] < 2 || found->shape[3] < 2 || found->bound * 4 > kGreatest)
      return;
    std::vector<int64_t> shape = found->shape;
    --shape[2];
    --shape[3];
    put(op(r_.coin() ? "avg_pool" : "max_pool", {found->x}, attrs({{"kernel", attr_ints({2, 2})}})),
        shape, found->bound * 4);
  }

  Random r_;
  Random* shakes_;
  Signatures signatures_;
  Builder b_;
  std::vector<Value> values_;
  std::vector<Any> inputs_;
  std::vector<Operand> magnitudes_;  // of sums: the same operators on magnitudes
};

}  // namespace

RangeProgram range_program(uint64_t seed) {
  ReferenceEvaluator evaluator(codegen::baseline_target(), KernelMode::kWalked);
  const auto run = [&](const graph::Module& module, const std::vector<Any>& inputs) {
    return evaluator.run(module, *module->functions.find("main"), inputs);
  };
  bool large = false;
  evaluator.state().observer = [&](const Binding&, const Any& value) {
    const auto t = value.try_as<Tensor>();
    if (!t || t->dtype() != f32) return;
    for (int64_t i = 0; i < t->count(); ++i) {
      large |= !(std::fabs(t->data_as<float>()[i]) <= 2 * kGreatest);
    }
  };
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t number = seed + (attempt << 40);
    RangeMaker maker(number, nullptr);
    RangeProgram out;
    out.module = maker.make();
    out.inputs = maker.inputs();
    large = false;
    const std::vector<Any> expected = run(out.module, out.inputs);
    for (const Any& result : expected) {
      out.allowed.emplace_back(static_cast<size_t>(result.as<Tensor>().count()));
    }
    Random shakes(number);
    for (int k = 0; k < kPerturbed && !large; ++k) {
      const std::vector<Any> found = run(RangeMaker(number, &shakes).make(), out.inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        const Tensor x = expected[i].as<Tensor>(), y = found[i].as<Tensor>();
        for (size_t j = 0; j < out.allowed[i].size(); ++j) {
          const double v = x.data_as<float>()[j];
          const double rounding = kSlack * std::fabs(y.data_as<float>()[j] - v) +
                                  4 * kUnit * std::fabs(v) + 4 * 0x1p-149;
          out.allowed[i][j] = std::max(out.allowed[i][j], rounding);
        }
      }
    }
    if (!large) return out;
  }
}

std::string find_difference(const RangeProgram& program) {
  // Winograd's convolutions have other errors (docs/semantics.md).
  return find_difference(program.module, program.inputs,
                         {.levels = {1, 2, 3},
                          .may_fail = false,
                          .direct_convolutions = true,
                          .allowed = program.allowed});
}

}  // namespace tenon::random_programs
