// Makes @main of a range program, step by step.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/module.h"
#include "graph/op/rule.h"

namespace tenon::random_programs {

inline constexpr double kGreatest = 1e37;  // of any value
inline constexpr double kUnit = 0x1p-23;   // in the last place, relative

// The same program as it is, or with each result and each term of a sum perturbed by some units in
// the last place: a seed decides the one, `shakes` the other.
class RangeMaker {
 public:
  // `shakes` is what perturbs, or null.
  RangeMaker(uint64_t seed, graph::Random* shakes) : r_(seed), shakes_(shakes), b_(signatures_) {
    quantises_ = r_.between(0, 2) == 0;
    b_.at(Span::node("main"));
  }

  // The program. What perturbed ones return after the results of the unperturbed one is of no
  // interest as such: no sum of magnitudes may exceed kGreatest.
  graph::Module make();
  const std::vector<Any>& inputs() const { return inputs_; }
  // Whether the program is like a quantised model: a perturbation changes integers by one.
  bool quantises() const { return quantises_; }

 private:
  using Operand = graph::Operand;
  using Shape = std::vector<int64_t>;

  // Parameters of quantize_linear: one number, or one for each index of `axis`.
  struct Quantisation {
    Operand scale, zero;  // zero may be absent
    DataType dtype;
    int64_t axis = 0;
    double bound = 0;  // of what the integers stand for
  };
  struct Value {
    Operand x;
    Shape shape;
    double bound = 0;                       // of |x|
    std::optional<Quantisation> quantised;  // what x was quantised with, and dequantised
  };
  struct Weights {
    Operand w;
    double bound;
  };

  // ---- numbers ----

  // One of any magnitude, such that its product with `bound` is at most kGreatest.
  float number(double bound);
  // Most tensors have elements of about one magnitude, as those of models do, or of nearly one
  // value.
  Tensor numbers(const Shape& shape, double bound);
  float near(float v) { return v * (1 + static_cast<float>(r_.between(-8, 8)) * 0x1p-18F); }
  float part_of(float v) { return v * static_cast<float>(r_.between(-8, 8)) / 8; }
  static int64_t count_of(const Shape& shape);
  static double bound_of(const Tensor& t);
  static Operand scalar(float v);

  // ---- operators, perturbed ----

  static Shape shape_of(const Operand& x);
  // Multiples of `by` from -4 to 4, plus `around`.
  Operand changes(const Shape& shape, double by, double around);
  // x with each element changed by up to 4 units in the last place, but zeros.
  Operand shaken(const Operand& x);
  // The rounding error of a sum is relative to its terms, of others to the result.
  Operand op(std::string_view name, std::vector<Operand> args, const graph::Attrs& how = {});
  // Among large numbers, rounding decides which is the greatest, and thus all weights.
  Operand softmax(const Operand& x);

  // ---- values ----

  void put(const Operand& x, Shape shape, double bound) {
    values_.push_back({x, std::move(shape), bound, std::nullopt});
  }
  Value pick();
  std::optional<Value> pick_of_rank(size_t rank);
  // Quantises what it picks, if the program quantises.
  std::optional<Value> pick_for_product(size_t rank);
  // The axis that normalisations and biases follow.
  static int64_t channel_axis(const Value& v) { return v.shape.size() == 4 ? 1 : 2; }
  static int64_t channels(const Value& v) { return v.shape[static_cast<size_t>(channel_axis(v))]; }
  Tensor per_channel(const Value& v, double bound) { return numbers({channels(v)}, bound); }
  // `t`, shaped to broadcast along the channels.
  Operand along_channels(const Value& v, const Tensor& t);

  // ---- steps: each does nothing if no value fits it ----

  void step();
  void factor();
  void term();
  void batch_norm();
  void normalise_batch(const Value& v);
  void bounded();
  void curved();
  void clipped();
  void convolve();
  void transpose_convolve();
  void product();
  void attention();
  void normalise();
  void join();
  void reduce();
  void pool();

  // ---- steps of quantised models ----

  void quantise() { quantise(pick()); }
  void quantise(const Value& v);
  void quantise_with(const Value& v, const Quantisation& how);
  void move_quantised();
  void product_of_bytes();
  // Of a product whose other operand is `v`, of `terms` terms: of floats, or dequantised.
  Weights weights(const Value& v, const Shape& shape, int64_t axis, double terms);
  // `axis`, which the result keeps, mostly has the scales.
  Weights quantised_weights(const Value& v, const Shape& shape, int64_t axis, double terms);
  // One number for each channel of a sum.
  Weights bias(const Value& v);
  // For numbers up to `bound`: one scale, or as many as fill the shape.
  Quantisation quantisation(double bound, const std::optional<Shape>& each,
                            const std::vector<DataType>& dtypes = {i8, u8});
  // The same, but now and then one parameter differs.
  Quantisation nearly(const Quantisation& how);
  float scale_for(double bound);
  // Any that the type has; elements take a byte.
  Tensor integers(const Shape& shape, DataType dtype);
  Operand transposed(const Operand& x);

  graph::Random r_;
  graph::Random* shakes_;
  graph::Signatures signatures_;
  graph::Builder b_;
  std::vector<Value> values_;
  std::vector<Any> inputs_;
  std::vector<Operand> magnitudes_;  // of sums: the same operators on magnitudes
  bool quantises_ = false;
};

}  // namespace tenon::random_programs
