// Makes the body of one random function, operator by operator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/op/rule.h"

namespace tenon::random_programs {

struct Value {
  graph::Operand x;
  // Computed without rounding, so that discontinuous operators (floor, comparisons, arg...) may
  // follow.
  bool exact = true;
  double bound = 5;  // an approximate bound of |x|
};

// A function that bodies may call. It takes a tensor or, if it is recursive, a count and a tensor,
// and its result has the tensor's type.
struct Helper {
  std::string name;
  graph::TypeRef type;
  bool counts = false;
};

// Builds one function's body and its nested blocks.
class BodyMaker {
 public:
  BodyMaker(graph::Random& random, graph::Builder& builder, const std::vector<Helper>& helpers)
      : r_(random), b_(builder), helpers_(helpers) {}

  void add(const graph::Operand& x, bool exact, double bound) {
    values_.push_back({x, exact, bound});
  }

  // Adds one random operator or construct; does nothing if no value fits it.
  void step(int depth);
  // The function's result: up to three of the last values.
  graph::Operand result();
  // Applies a few operators that keep the type to a float tensor.
  graph::Operand changed(graph::Operand x);

 private:
  // ---- choosing ----

  static const graph::TensorType& tensor(const Value& v) {
    return *graph::type_as<graph::TensorType>(graph::type_of(v.x));
  }
  static std::vector<Dim> dims(const Value& v) { return tensor(v).dims.to_vector(); }
  static size_t rank(const Value& v) { return tensor(v).dims.size(); }

  // One of the values that satisfy `fits`, preferably a late one; null if there is none.
  const Value* pick(const std::function<bool(const Value&)>& fits);
  const Value* pick_float(size_t least_rank = 0, size_t greatest_rank = 4);
  const Value* pick_exact(size_t least_rank = 0);
  const Value* pick_scalar();
  static bool is_float(const Value& v);  // a float32 tensor of known dimensions
  size_t axis_of(const Value& v);

  // ---- adding ----

  // Adds a value; reduces it first if its bound has grown too large.
  void put(graph::Operand x, bool exact, double bound);
  void put(const graph::Operand& x, const Value& like) { put(x, like.exact, like.bound); }

  static graph::Operand number(double v);
  graph::Operand weights(const std::vector<int64_t>& shape);
  static graph::Operand integer_list(const std::vector<int64_t>& v);

  // ---- operators (body_operators.cc) ----

  void smooth();
  void exact_function();
  // Two values, one of which broadcasts to the other without a check.
  void arithmetic();
  void scale();
  // where(x < y, a, b), where x and y are exact.
  void choose();
  void reduce();
  void normalise();
  void transpose();
  // Merges two axes or inserts an axis of size 1.
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
  // Sizes as data, as in exported models.
  void shape_data();
  // Packed functions whose result sizes depend on data.
  void search();
  void scalars();

  // ---- integers of positions (body_positions.cc) ----

  int64_t any_integer();
  // A vector of i64.
  graph::Operand positions(const Dim& count);
  // A mask, an addend or indices of a float tensor.
  void use_positions();

  // ---- constructs (body_maker.cc) ----

  graph::Operand changed_once(const graph::Operand& x);
  // Values that `body` makes are local to a nested block.
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
