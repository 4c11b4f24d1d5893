// Steps that add an operator of floats, or a few.
#include <algorithm>
#include <cmath>
#include <utility>

#include "object/tensor.h"
#include "range_maker.h"
#include "weighted.h"

namespace tenon::random_programs {

using namespace graph;  // NOLINT: this file uses only graph IR

void RangeMaker::step() {
  using Step = std::pair<int, void (RangeMaker::*)()>;
  static constexpr Step kSteps[] = {
      {2, &RangeMaker::factor},     {1, &RangeMaker::term},
      {1, &RangeMaker::batch_norm}, {1, &RangeMaker::bounded},
      {3, &RangeMaker::convolve},   {1, &RangeMaker::product},
      {1, &RangeMaker::attention},  {1, &RangeMaker::normalise},
      {1, &RangeMaker::join},       {1, &RangeMaker::reduce},
      {1, &RangeMaker::curved},     {1, &RangeMaker::pool},
      {1, &RangeMaker::clipped},    {2, &RangeMaker::transpose_convolve}};
  static constexpr Step kQuantisedSteps[] = {
      {3, &RangeMaker::convolve},         {3, &RangeMaker::product}, {2, &RangeMaker::quantise},
      {4, &RangeMaker::move_quantised},   {1, &RangeMaker::join},    {1, &RangeMaker::clipped},
      {1, &RangeMaker::product_of_bytes}, {1, &RangeMaker::term},    {1, &RangeMaker::factor},
      {1, &RangeMaker::attention}};
  const auto chosen = quantises_ ? pick_weighted(r_, kQuantisedSteps) : pick_weighted(r_, kSteps);
  (this->*chosen)();
}

void RangeMaker::factor() {
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

void RangeMaker::term() {
  const Value v = pick();
  const Tensor by = r_.coin() ? per_channel(v, 1) : numbers(v.shape, 1);
  const Operand y = by.rank() == 1 ? along_channels(v, by) : constant(by);
  put(r_.coin() ? op("add", {v.x, y}) : op("sub", {v.x, y}), v.shape, v.bound + bound_of(by));
}

void RangeMaker::batch_norm() {
  if (const std::optional<Value> found = pick_of_rank(4)) normalise_batch(*found);
}
void RangeMaker::normalise_batch(const Value& v) {
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

void RangeMaker::bounded() {
  const Value v = pick();
  static const std::vector<const char*> kNames = {"tanh", "sigmoid", "sin", "atan"};
  put(op(r_.pick(kNames), {v.x}), v.shape, 2);
}

// Functions that are defined, or kept, on a part of the numbers.
void RangeMaker::curved() {
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

void RangeMaker::clipped() {
  const Value v = pick();
  static const std::vector<const char*> kNames = {"relu", "abs", "neg"};
  if (r_.coin()) return put(op(r_.pick(kNames), {v.x}), v.shape, v.bound);
  const float by = number(1);
  put(op(r_.coin() ? "minimum" : "maximum", {v.x, scalar(by)}), v.shape,
      std::max<double>(v.bound, std::fabs(by)));
}

void RangeMaker::convolve() {
  const std::optional<Value> found = pick_for_product(4);
  if (!found) return;
  const Value& v = *found;
  const int64_t side = r_.coin() ? 3 : 1, out = r_.between(1, 3);
  const double terms = static_cast<double>(v.shape[1] * side * side);
  if (v.bound * terms > kGreatest) return;
  const Weights by = weights(v, {out, v.shape[1], side, side}, 0, terms);
  const int64_t pad = side / 2;
  Value sum{Operand(), v.shape, v.bound * terms * by.bound, std::nullopt};
  sum.shape[1] = out;
  Operand inside;
  if (r_.between(0, 2) == 0) {
    const Weights added = bias(sum);
    inside = added.w;
    sum.bound += added.bound;
  }
  sum.x = op("conv", {v.x, by.w, inside}, attrs({{"pads", attr_dims({pad, pad, pad, pad})}}));
  if (r_.between(0, 3) == 0) {
    const Tensor term = per_channel(sum, 1);
    sum.x = op("add", {sum.x, along_channels(sum, term)});
    sum.bound += bound_of(term);
  }
  put(sum.x, sum.shape, sum.bound);
  const int64_t next = r_.between(0, 2);
  if (quantises_ && next > 0) return quantise(Value(values_.back()));
  if (next > 0) normalise_batch(Value(values_.back()));
}

void RangeMaker::transpose_convolve() {
  const Value v = pick();
  const size_t spatial = v.shape.size() - 2;
  const int64_t groups = v.shape[1] % 2 == 0 ? r_.between(1, 2) : 1, filters = r_.between(1, 2);
  Shape shape = {v.shape[0], filters * groups}, w = {v.shape[1], filters};
  std::vector<int64_t> strides, dilations, extra;
  std::vector<Dim> begin, end;
  const int64_t channels = v.shape[1] / groups;
  auto terms = static_cast<double>(channels);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t kernel = r_.between(1, 4), in = v.shape[i + 2];
    strides.push_back(r_.between(1, 3));
    dilations.push_back(r_.between(0, 3) == 0 ? 2 : 1);
    extra.push_back(r_.between(0, 3) == 0 ? r_.between(0, 2) : 0);
    const int64_t whole = (in - 1) * strides[i] + (kernel - 1) * dilations[i] + 1 + extra[i];
    const int64_t before = r_.between(0, std::min<int64_t>(whole - 1, 3)),
                  after = r_.between(0, std::min<int64_t>(whole - 1 - before, 3));
    begin.emplace_back(before);
    end.emplace_back(after);
    w.push_back(kernel);
    shape.push_back(whole - before - after);
    terms *= static_cast<double>(kernel);
  }
  // Later operators would take too long.
  if (v.bound * terms > kGreatest || count_of(shape) > 1000) return;
  begin.insert(begin.end(), end.begin(), end.end());
  const Tensor by = numbers(w, v.bound * terms);
  double bound = v.bound * terms * bound_of(by);
  Operand inside;
  if (r_.coin()) {
    const Tensor added = numbers({shape[1]}, 1);
    inside = constant(added);
    bound += bound_of(added);
  }
  const Operand y = op("conv_transpose", {v.x, constant(by), inside},
                       attrs({{"strides", attr_ints(strides)},
                              {"pads", attr_dims(begin)},
                              {"dilations", attr_ints(dilations)},
                              {"output_padding", attr_ints(extra)},
                              {"groups", Any(groups)}}));
  put(y, shape, bound);
}

void RangeMaker::product() {
  const std::optional<Value> found = pick_for_product(3);
  if (!found) return;
  const Value& v = *found;
  const auto terms = static_cast<double>(v.shape[2]);
  if (v.bound * terms > kGreatest) return;
  const int64_t columns = r_.between(1, 5);
  Shape shape = {v.shape[2], columns};
  if (r_.between(0, 3) == 0) shape.insert(shape.begin(), v.shape[0]);
  const Weights by = weights(v, shape, std::ssize(shape) - 1, terms);
  put(op("matmul", {v.x, by.w}), {v.shape[0], v.shape[1], columns}, v.bound * terms * by.bound);
  if (quantises_ && r_.coin()) quantise(Value(values_.back()));
}

void RangeMaker::attention() {
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

void RangeMaker::normalise() {
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
void RangeMaker::join() {
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

void RangeMaker::reduce() {
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

void RangeMaker::pool() {
  const std::optional<Value> found = pick_of_rank(4);
  if (!found || found->shape[2] < 2 || found->shape[3] < 2 || found->bound * 4 > kGreatest) return;
  std::vector<int64_t> shape = found->shape;
  --shape[2];
  --shape[3];
  put(op(r_.coin() ? "avg_pool" : "max_pool", {found->x}, attrs({{"kernel", attr_ints({2, 2})}})),
      shape, found->bound * 4);
}

}  // namespace tenon::random_programs
