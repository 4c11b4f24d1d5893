// The body of one random function, made operator by operator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/op/rule.h"

namespace tenon::random_programs {

struct Value {
  graph::Operand x;
  // Computed without rounding, so that steps (floor, comparisons, arg...) may follow.
  bool exact = true;
  double bound = 5;  // of |x|, by and large
};

// A function that bodies may call: of a tensor, or of a count and a tensor where it calls itself,
// with a result of the tensor's type.
struct Helper {
  std::string name;
  graph::TypeRef type;
  bool counts = false;
};

// Builds one function's body, and those of its blocks.
class BodyMaker {
 public:
  BodyMaker(graph::Random& random, graph::Builder& builder, const std::vector<Helper>& helpers)
      : r_(random), b_(builder), helpers_(helpers) {}

  void add(const graph::Operand& x, bool exact, double bound) {
    values_.push_back({x, exact, bound});
  }

  // Adds one operator or construct; does nothing where its choice does not fit.
  void step(int depth);
  // The function's result: up to three of the last values.
  graph::Operand result();
  // A float tensor changed by a few operators that keep its type.
  graph::Operand changed(graph::Operand x);

 private:
  // ---- choosing ----

  static const graph::TensorType& tensor(const Value& v) {
    return *graph::type_as<graph::TensorType>(graph::type_of(v.x));
  }
  static std::vector<Dim> dims(const Value& v) { return tensor(v).dims.to_vector(); }
  static size_t rank(const Value& v) { return tensor(v).dims.size(); }

  // One of the values that fit, a late one more often; null if none does.
  const Value* pick(const std::function<bool(const Value&)>& fits);
  const Value* pick_float(size_t least_rank = 0, size_t greatest_rank = 4);
  const Value* pick_exact(size_t least_rank = 0);
  const Value* pick_scalar();
  static bool is_float(const Value& v);  // a float32 tensor of known dimensions
  size_t axis_of(const Value& v);

  // ---- adding ----

  // Values that have grown are bent back.
  void put(graph::Operand x, bool exact, double bound);
  void put(const graph::Operand& x, const Value& like) { put(x, like.exact, like.bound); }

  static graph::Operand number(double v);
  graph::Operand weights(const std::vector<int64_t>& shape);
  static graph::Operand integer_list(const std::vector<int64_t>& v);

  // ---- operators (body_operators.cc) ----

  void smooth();
  void exact_function();
  // Two values, one of which is broadcast to the other without a check.
  void arithmetic();
  void scale();
  // where(x < y, a, b): a comparison of exact values.
  void choose();
  void reduce();
  void normalise();
  void transpose();
  // Two axes become one, or an axis of 1 comes.
  void flatten();
  void join_axis();
  void cut();
  void repeat();
  void pad();
  void gather();
  void product();
  // A convolution or a pooling of one image.
  void convolve();
  void scan();
  // Floats to integers and back.
  void integers();
  // What exporters make of shapes: sizes as data.
  void shape_data();
  // Packed functions whose results' sizes depend on data.
  void search();
  void scalars();

  // ---- constructs (body_maker.cc) ----

  graph::Operand changed_once(const graph::Operand& x);
  // Values made meanwhile are those of a nested block.
  graph::Operand in_block(const std::function<graph::Operand()>& body);
  graph::Operand condition();
  void branch();
  void loop();
  void call();

  graph::Random& r_;
  graph::Builder& b_;
  const std::vector<Helper>& helpers_;
  std::vector<Value> values_;
  int depth_ = 0;
};

}  // namespace tenon::random_programs
