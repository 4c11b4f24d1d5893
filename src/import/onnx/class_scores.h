// What the models of ai.onnx.ml share: rows of features, transforms of scores, and class labels.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

// Operand 0 as [rows, features] of a float type; a list of features stands for one row.
Operand feature_rows(NodeContext& cx, DataType dtype);
// The same with that many features, which is checked at run time where the type doesn't prove it.
Operand feature_rows(NodeContext& cx, DataType dtype, int64_t features);

// How many features `count` coefficients have for each of `parts`; throws if they don't divide.
int64_t features_of(NodeContext& cx, const char* what, size_t count, size_t parts);

// A constant f32 tensor.
Operand numbers(const Ints& shape, const std::vector<double>& values);

// Numbered as in TreeEnsemble.
enum class Transform { None, Softmax, Logistic, SoftmaxZero, Probit };
Transform post_transform(NodeContext& cx);  // the attribute, by its name

// f32 [rows, columns] of scores, transformed. Of one column, only Probit is implemented.
Operand transformed(NodeContext& cx, const Operand& scores, int64_t columns, Transform transform);

// f32 [rows, 2]: the scores of two classes, made of the second's [rows, 1]. Logistic is applied to
// -score and score, Probit is refused, and Softmax and SoftmaxZero are ignored, as None is: then
// the first's score is 1 - score if the two are shares, otherwise -score. ONNX leaves this open;
// the choices are ONNX Runtime's.
Operand two_scores(NodeContext& cx, const Operand& second, bool shares, Transform transform);

// The class labels of a node: integers or strings.
class ClassLabels {
 public:
  // From the attributes of these names, of which one must be present.
  ClassLabels(NodeContext& cx, const char* integers, const char* strings);

  size_t count() const { return strings_.empty() ? integers_.size() : strings_.size(); }
  const Ints& integers() const { return integers_; }
  // i64[rows] or string[rows]: the labels at these places, i64[rows].
  Operand at(NodeContext& cx, const Operand& places) const;

 private:
  Ints integers_;
  std::vector<std::string> strings_;
};

// i64[rows]: the place of the greatest of each row's scores, the first of equal ones.
Operand greatest(NodeContext& cx, const Operand& scores);
// i64[rows]: 1 where the score [rows, 1] is above the bound, else 0.
Operand above(NodeContext& cx, const Operand& score, double bound);

}  // namespace tenon::onnx
