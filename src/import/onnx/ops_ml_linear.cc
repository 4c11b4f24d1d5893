// Linear models and support vector machines of ai.onnx.ml. Their specification:
// docs/Operators-ml.md of ONNX. Where it is vague, they compute what ONNX Runtime does.

#include "import/onnx/class_scores.h"

namespace tenon::onnx {

namespace {

using graph::attrs;
using Numbers = std::vector<double>;

int64_t size_of(const Numbers& list) {
  return static_cast<int64_t>(list.size());
}

// x times a matrix of a row per output, as f32 [rows, outputs].
Operand product(NodeContext& cx, const Operand& x, const Numbers& matrix, int64_t outputs) {
  const int64_t features = outputs == 0 ? 0 : size_of(matrix) / outputs;
  return cx.op("matmul", {x, cx.transpose(numbers({outputs, features}, matrix), {1, 0})});
}

Operand linear_scores(NodeContext& cx, const Numbers& coefficients, const Numbers& intercepts,
                      size_t outputs) {
  const int64_t features = features_of(cx, "coefficients", coefficients.size(), outputs);
  Operand y =
      product(cx, feature_rows(cx, f32, features), coefficients, static_cast<int64_t>(outputs));
  if (intercepts.empty()) return y;
  return cx.add(y, numbers({size_of(intercepts)}, intercepts));
}

Operands linear_regressor(NodeContext& cx) {
  const int64_t targets = cx.attr_int("targets", 1);
  const Numbers coefficients = cx.attr_floats("coefficients");
  const Numbers intercepts = cx.attr_floats("intercepts");
  if (targets < 1) cx.invalid(cat("targets=", targets), "1 or more");
  if (!intercepts.empty() && size_of(intercepts) != targets)
    cx.invalid(cat("intercepts has ", intercepts.size(), " entries"), cat(targets, ", as targets"));
  const Operand y = linear_scores(cx, coefficients, intercepts, static_cast<size_t>(targets));
  return {transformed(cx, y, targets, post_transform(cx))};
}

// -> labels, scores
Operands linear_classifier(NodeContext& cx) {
  cx.ignore("multi_class");  // how the model was trained
  const ClassLabels labels(cx, "classlabels_ints", "classlabels_strings");
  const Numbers coefficients = cx.attr_floats("coefficients");
  const Numbers intercepts = cx.attr_floats("intercepts");
  const Transform transform = post_transform(cx);
  const size_t rows = intercepts.empty() ? labels.count() : intercepts.size();
  if (rows != labels.count() && (rows != 1 || labels.count() != 2)) {
    cx.invalid(cat("intercepts has ", rows, " entries for ", labels.count(), " classes"),
               "one per class, or one for two classes");
  }
  const Operand scores = linear_scores(cx, coefficients, intercepts, rows);
  if (rows == 1 && labels.count() == 2)
    return {labels.at(cx, above(cx, scores, 0)), two_scores(cx, scores, true, transform)};
  return {labels.at(cx, greatest(cx, scores)),
          transformed(cx, scores, static_cast<int64_t>(rows), transform)};
}

// ---- support vector machines ----

class Kernel {
 public:
  explicit Kernel(NodeContext& cx) : type_(cx.attr_string("kernel_type", "LINEAR")) {
    if (type_ != "LINEAR" && type_ != "POLY" && type_ != "RBF" && type_ != "SIGMOID")
      cx.invalid(cat("kernel_type='", printable(type_), "'"), "LINEAR, POLY, RBF or SIGMOID");
    const Numbers given = cx.attr_floats("kernel_params");
    if (!given.empty() && given.size() != 3)
      cx.invalid(cat("kernel_params has ", given.size(), " entries"), "3: gamma, coef0 and degree");
    if (!given.empty()) params_ = given;
  }

  // f32 [rows, vectors]: of each row of x and each of the vectors.
  Operand of(NodeContext& cx, const Operand& x, const Numbers& vectors, int64_t count) const {
    auto number = [&](double v) { return cx.scalar(f32, v); };
    const double gamma = params_[0], offset = params_[1], degree = params_[2];
    if (type_ == "RBF") {
      const int64_t features = count == 0 ? 0 : size_of(vectors) / count;
      const Operand away = cx.sub(cx.unsqueeze(x, {1}), numbers({1, count, features}, vectors));
      const Operand squares = cx.reduce("reduce_sum", cx.mul(away, away), {2}, false);
      return cx.op("exp", {cx.mul(squares, number(-gamma))});
    }
    Operand dot = product(cx, x, vectors, count);
    if (type_ == "LINEAR") return dot;
    const Operand line = cx.add(cx.mul(dot, number(gamma)), number(offset));
    if (type_ == "SIGMOID") return cx.op("tanh", {line});
    if (degree == 2) return cx.mul(line, line);
    if (degree == 3) return cx.mul(line, cx.mul(line, line));
    return cx.op("pow", {line, number(degree)});
  }

 private:
  std::string type_;
  Numbers params_ = {0, 0, 0};
};

Operands svm_regressor(NodeContext& cx) {
  const Kernel kernel(cx);
  const int64_t vectors = cx.attr_int("n_supports", 0);
  const Numbers coefficients = cx.attr_floats("coefficients"), rho = cx.attr_floats("rho");
  const Numbers support = cx.attr_floats("support_vectors");
  const bool one_class = cx.attr_bool("one_class", false);
  const Transform transform = post_transform(cx);
  // ONNX Runtime ignores all of them here, against ONNX.
  if (transform != Transform::None) cx.unsupported("post_transform not implemented");
  if (rho.size() != 1) cx.invalid(cat("rho has ", rho.size(), " entries"), "1");
  Operand y;
  if (vectors > 0) {
    const int64_t features =
        features_of(cx, "support_vectors", support.size(), static_cast<size_t>(vectors));
    if (size_of(coefficients) != vectors)
      cx.invalid(cat("coefficients has ", coefficients.size(), " entries"),
                 cat(vectors, ", as n_supports"));
    y = product(cx, kernel.of(cx, feature_rows(cx, f32, features), support, vectors), coefficients,
                1);
  } else {
    y = product(cx, feature_rows(cx, f32, size_of(coefficients)), coefficients, 1);
  }
  y = cx.add(y, cx.scalar(f32, rho[0]));
  if (!one_class) return {y};
  return {cx.op("where",
                {cx.op("greater", {y, cx.scalar(f32, 0)}), cx.scalar(f32, 1), cx.scalar(f32, -1)})};
}

// The classifiers of pairs of classes (0, 1), (0, 2), ... (1, 2), ... that a support vector machine
// consists of.
class Pairs {
 public:
  Pairs(NodeContext& cx, const Ints& vectors_per_class)
      : coefficients_(cx.attr_floats("coefficients")), rho_(cx.attr_floats("rho")) {
    for (const int64_t n : vectors_per_class) {
      if (n < 0 || n > INT32_MAX) cx.invalid(cat("vectors_per_class holds ", n), "0 or more");
      first_.push_back(first_.back() + n);
    }
    const int64_t n = classes();
    if (size_of(coefficients_) != (n - 1) * vectors())
      cx.invalid(cat("coefficients has ", coefficients_.size(), " entries"),
                 cat((n - 1) * vectors(), ": classes - 1 rows of vectors"));
    require_each(cx, "rho", rho_, n * (n - 1) / 2);
  }

  int64_t vectors() const { return first_.back(); }
  int64_t count() const { return size_of(rho_); }
  static void require_each(NodeContext& cx, const char* name, const Numbers& list, int64_t pairs) {
    if (size_of(list) != pairs)
      cx.invalid(cat(name, " has ", list.size(), " entries"), cat(pairs, ", one per pair"));
  }

  // f32 [rows, pairs]: above 0 for the pair's first class.
  Operand scores(NodeContext& cx, const Operand& kernels) const {
    const Operand bias = numbers({count()}, rho_);
    if (classes() == 2) return cx.add(product(cx, kernels, coefficients_, 1), bias);
    // The vectors of class c have classes - 1 coefficients each: row r is used against class r, or
    // r + 1 if that is not before c.
    const int64_t others = classes() - 1;
    Operands sums;  // [rows, others] of each class
    for (int64_t c = 0; c < classes(); ++c) {
      const int64_t begin = first_[at(c)], size = first_[at(c + 1)] - begin;
      Numbers own;
      for (int64_t r = 0; r < others; ++r) {
        const auto row = coefficients_.begin() + r * vectors() + begin;
        own.insert(own.end(), row, row + size);
      }
      sums.push_back(product(cx, cx.slice(kernels, 1, begin, size), own, others));
    }
    Ints of_first, of_second;
    for (int64_t i = 0; i < classes(); ++i) {
      for (int64_t j = i + 1; j < classes(); ++j) {
        of_first.push_back(i * others + j - 1);
        of_second.push_back(j * others + i);
      }
    }
    const Operand all = cx.concat(sums, 1);
    return cx.add(cx.add(columns(cx, all, of_first), columns(cx, all, of_second)), bias);
  }

  // i64[rows]: the class that wins most of its pairs, the first of equal ones.
  Operand winners(NodeContext& cx, const Operand& scores) const {
    const Operand first = cx.op("greater", {scores, cx.scalar(f32, 0)});
    const Operand second = cx.op("logical_not", {first}), rows = cx.slice(first, 1, 0, 1);
    const Operand never = cx.op("logical_and", {rows, cx.op("logical_not", {rows})});
    Ints wins(at(classes() * classes()), 2 * count());  // class i over class j; over itself never
    int64_t pair = 0;
    for (int64_t i = 0; i < classes(); ++i) {
      for (int64_t j = i + 1; j < classes(); ++j, ++pair) {
        wins[at(i * classes() + j)] = pair;
        wins[at(j * classes() + i)] = count() + pair;
      }
    }
    const Operand each = cx.cast(columns(cx, cx.concat({first, second, never}, 1), wins), f32);
    const Operand table = cx.reshape(each, {cx.dims(each)[0], classes(), classes()});
    return greatest(cx, cx.reduce("reduce_sum", table, {2}, false));
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  static Operand columns(NodeContext& cx, const Operand& x, const Ints& which) {
    return cx.op("gather", {x, cx.ints_tensor(which)}, attrs({{"axis", 1}}));
  }
  int64_t classes() const { return static_cast<int64_t>(first_.size()) - 1; }

  Numbers coefficients_, rho_;
  Ints first_ = {0};  // where each class's vectors begin, and the end
};

// Without support vectors: a row of coefficients per class.
Operands linear_svm_classifier(NodeContext& cx, const ClassLabels& labels, Transform transform) {
  const Numbers coefficients = cx.attr_floats("coefficients"), rho = cx.attr_floats("rho");
  // ONNX Runtime's labels don't follow the scores, and ONNX doesn't say what they are.
  if (labels.count() == 2) cx.unsupported("two classes without support vectors not implemented");
  if (rho.size() != 1) cx.invalid(cat("rho has ", rho.size(), " entries"), "1");
  const Operand scores =
      cx.add(linear_scores(cx, coefficients, {}, labels.count()), cx.scalar(f32, rho[0]));
  return {labels.at(cx, greatest(cx, scores)),
          transformed(cx, scores, static_cast<int64_t>(labels.count()), transform)};
}

// -> labels, scores
Operands svm_classifier(NodeContext& cx) {
  const ClassLabels labels(cx, "classlabels_ints", "classlabels_strings");
  const auto classes = static_cast<int64_t>(labels.count());
  if (classes < 2) cx.invalid(cat(classes, " classes"), "2 or more");
  const Kernel kernel(cx);
  const Ints per_class = cx.attr_ints("vectors_per_class");
  const Numbers a = cx.attr_floats("prob_a"), b = cx.attr_floats("prob_b");
  const Numbers support = cx.attr_floats("support_vectors");
  const Transform transform = post_transform(cx);
  if (per_class.empty()) return linear_svm_classifier(cx, labels, transform);
  if (per_class.size() != labels.count())
    cx.invalid(cat("vectors_per_class has ", per_class.size(), " entries"),
               cat(classes, ", one per class"));
  const Pairs pairs(cx, per_class);
  const int64_t features =
      features_of(cx, "support_vectors", support.size(), static_cast<size_t>(pairs.vectors()));
  const Operand x = feature_rows(cx, f32, features);
  const Operand scores = pairs.scores(cx, kernel.of(cx, x, support, pairs.vectors()));
  const Operand label = labels.at(cx, pairs.winners(cx, scores));
  if (!a.empty() || !b.empty()) {
    Pairs::require_each(cx, "prob_a", a, pairs.count());
    Pairs::require_each(cx, "prob_b", b, pairs.count());
    const Operand line =
        cx.add(cx.mul(scores, numbers({pairs.count()}, a)), numbers({pairs.count()}, b));
    const double least = 1e-7;
    const Operand share = cx.op("clip", {cx.op("sigmoid", {cx.op("neg", {line})}),
                                         cx.scalar(f32, least), cx.scalar(f32, 1 - least)});
    const Operand y = cx.op("pairwise_coupling", {share}, attrs({{"classes", classes}}));
    return {label, transformed(cx, y, classes, transform)};
  }
  if (classes == 2) return {label, two_scores(cx, scores, transform != Transform::None, transform)};
  return {label, transformed(cx, scores, pairs.count(), transform)};
}

}  // namespace

void register_ml_linear(OpTable& t) {
  t.add("LinearClassifier", 1, linear_classifier, kMl);
  t.add("LinearRegressor", 1, linear_regressor, kMl);
  t.add("SVMClassifier", 1, svm_classifier, kMl);
  t.add("SVMRegressor", 1, svm_regressor, kMl);
}

}  // namespace tenon::onnx
