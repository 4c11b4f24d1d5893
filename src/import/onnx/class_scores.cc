#include "import/onnx/class_scores.h"

#include <cmath>

#include "support/text.h"

namespace tenon::onnx {

using graph::attrs;

Operand feature_rows(NodeContext& cx, DataType dtype) {
  Operand x = cx.cast(cx.in(0), dtype);
  const int64_t rank = cx.rank(x);
  if (rank != 1 && rank != 2) cx.invalid(cat("X of rank ", rank), "1 or 2: rows of features");
  return rank == 1 ? cx.unsqueeze(x, {0}) : x;
}

Operand feature_rows(NodeContext& cx, DataType dtype, int64_t features) {
  Operand x = feature_rows(cx, dtype);
  const Dims dims = cx.dims(x);
  const auto found = dims[1].as_const();
  if (!found) return cx.b.match_shape(x, {dims[0], features});
  if (*found != features)
    cx.invalid(cat("X with ", *found, " features"), cat(features, ", as the attributes have"));
  return x;
}

int64_t features_of(NodeContext& cx, const char* what, size_t count, size_t parts) {
  if (parts == 0 || count % parts != 0)
    cx.invalid(cat(what, " has ", count, " entries"), cat("a multiple of ", parts));
  return static_cast<int64_t>(count / parts);
}

Operand numbers(const Ints& shape, const std::vector<double>& values) {
  return graph::constant(make_tensor(f32, shape, values));
}

// ---- transforms ----

namespace {

constexpr const char* kTransformNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

const char* name_of(Transform transform) {
  return kTransformNames[static_cast<size_t>(transform)];
}

// softmax in which scores near 0 stay near 0 and don't count.
Operand softmax_zero(NodeContext& cx, const Operand& scores) {
  auto number = [&](double v) { return cx.scalar_like(scores, v); };
  const Operand most = cx.reduce("reduce_max", scores, {1}, true);
  const Operand counts = cx.op("greater", {cx.op("abs", {scores}), number(1e-7)});
  const Operand power = cx.op("exp", {cx.sub(scores, most)});
  const Operand small = cx.mul(scores, cx.op("exp", {cx.op("neg", {most})}));
  const Operand sum =
      cx.reduce("reduce_sum", cx.op("where", {counts, power, number(0)}), {1}, true);
  return cx.div(cx.op("where", {counts, power, small}), sum);
}

// sqrt(2) erfinv(2 score - 1), with Winitzki's approximation, as ONNX's reference has it. Near 1/2
// it is a difference of near numbers, so it is computed in doubles.
Operand probit(NodeContext& cx, const Operand& score) {
  constexpr double kWinitzki = 0.147;
  auto number = [&](double v) { return cx.scalar(f64, v); };
  const Operand x = cx.sub(cx.mul(cx.cast(score, f64), number(2)), number(1));
  const Operand log = cx.op("log", {cx.mul(cx.sub(number(1), x), cx.add(number(1), x))});
  const Operand half = cx.add(number(2 / (M_PI * kWinitzki)), cx.mul(log, number(0.5)));
  const Operand square = cx.sub(cx.mul(half, half), cx.div(log, number(kWinitzki)));
  const Operand size = cx.op("sqrt", {cx.sub(cx.op("sqrt", {square}), half)});
  const Operand sign =
      cx.op("where", {cx.op("less", {x, number(0)}), number(-M_SQRT2), number(M_SQRT2)});
  return cx.cast(cx.mul(sign, size), cx.dtype(score));
}

}  // namespace

Transform post_transform(NodeContext& cx) {
  const std::string name = cx.attr_string("post_transform", "NONE");
  for (size_t i = 0; i < std::size(kTransformNames); ++i) {
    if (name == kTransformNames[i]) return static_cast<Transform>(i);
  }
  cx.invalid(cat("post_transform='", printable(name), "'"),
             cat("one of ", join({std::begin(kTransformNames), std::end(kTransformNames)}, ", ")));
}

Operand transformed(NodeContext& cx, const Operand& scores, int64_t columns, Transform transform) {
  if (transform == Transform::None) return scores;
  if (transform == Transform::Probit) return probit(cx, scores);
  if (columns == 1)  // ONNX Runtime leaves it as it is, against ONNX
    cx.unsupported(cat("post_transform=", name_of(transform), " of one score not implemented"));
  if (transform == Transform::Logistic) return cx.op("sigmoid", {scores});
  if (transform == Transform::SoftmaxZero) return softmax_zero(cx, scores);
  return cx.op("softmax", {scores}, attrs({{"axis", 1}}));
}

Operand two_scores(NodeContext& cx, const Operand& second, bool shares, Transform transform) {
  if (transform == Transform::Probit)
    cx.unsupported("post_transform=PROBIT of one score for two classes not implemented");
  const Operand opposite = cx.op("neg", {second});
  if (transform == Transform::Logistic) return cx.op("sigmoid", {cx.concat({opposite, second}, 1)});
  const Operand first = shares ? cx.add(cx.scalar_like(second, 1), opposite) : opposite;
  return cx.concat({first, second}, 1);
}

// ---- labels ----

ClassLabels::ClassLabels(NodeContext& cx, const char* integers, const char* strings)
    : integers_(cx.attr_ints(integers)), strings_(cx.attr_strings(strings)) {
  if (integers_.empty() == strings_.empty()) {
    cx.invalid(integers_.empty() ? "no class labels" : "class labels of two kinds",
               cat("one of ", integers, " and ", strings));
  }
}

Operand ClassLabels::at(NodeContext& cx, const Operand& places) const {
  const Operand all = strings_.empty() ? cx.ints_tensor(integers_) : cx.strings_tensor(strings_);
  return cx.op("gather", {all, places}, attrs({{"axis", 0}}));
}

Operand greatest(NodeContext& cx, const Operand& scores) {
  return cx.op("argmax", {scores}, attrs({{"axis", 1}, {"keepdims", false}}));
}

Operand above(NodeContext& cx, const Operand& score, double bound) {
  const Operand one = cx.squeeze(score, {1});
  return cx.cast(cx.op("greater", {one, cx.scalar_like(one, bound)}), i64);
}

}  // namespace tenon::onnx
