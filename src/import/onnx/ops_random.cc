// Random numbers, and Dropout, which draws some while it trains. A node with a seed gives the same
// numbers in every run; without, they come from the system's randomness.

#include <cmath>
#include <cstring>
#include <numbers>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;

struct Seed {
  bool given = false;
  int64_t value = 0;
};

// A seed that is a float of any value stands for its bits.
Seed float_seed(NodeContext& cx) {
  Seed seed{cx.has_attr("seed")};
  const double number = cx.attr_float("seed", 0);
  std::memcpy(&seed.value, &number, sizeof number);
  return seed;
}

// Uniform words u32 of a shape.
Operand words(NodeContext& cx, const Dims& shape, const Seed& seed) {
  constexpr std::string_view kName = "tenon.random";
  return cx.b.call_packed(
      kName, {}, graph::tensor_type(u32, shape),
      attrs({{"shape", attr_dims(shape)}, {"seed", seed.value}, {"seeded", seed.given}}));
}

// The upper `bits` of words as numbers of type `dtype`.
Operand upper_bits(NodeContext& cx, const Operand& words, int bits, DataType dtype) {
  return cx.cast(cx.op("shift_right", {words, cx.scalar(u32, 32 - bits)}), dtype);
}

// f32 or f64 in [0, 1), as fine as the type is near 1. Adds an axis of two words for f64.
Operand uniform(NodeContext& cx, const Dims& shape, DataType dtype, const Seed& seed) {
  if (dtype == f32) {
    return cx.mul(upper_bits(cx, words(cx, shape, seed), 24, f32),
                  cx.scalar(f32, std::ldexp(1, -24)));
  }
  Dims pairs = {2};
  pairs.insert(pairs.end(), shape.begin(), shape.end());
  const Operand all = words(cx, pairs, seed);
  auto part = [&](int64_t i, int bits) {
    return upper_bits(cx, cx.squeeze(cx.slice(all, 0, i, 1), {0}), bits, f64);
  };
  const Operand sum = cx.add(cx.mul(part(0, 27), cx.scalar(f64, std::ldexp(1, 26))), part(1, 26));
  return cx.mul(sum, cx.scalar(f64, std::ldexp(1, -53)));
}

// Of mean 0 and deviation 1, by Box and Muller: sqrt(-2 ln(1 - u)) cos(2 pi v).
Operand normal(NodeContext& cx, const Dims& shape, DataType dtype, const Seed& seed) {
  Dims pairs = {2};
  pairs.insert(pairs.end(), shape.begin(), shape.end());
  const Operand both = uniform(cx, pairs, dtype, seed);
  auto part = [&](int64_t i) { return cx.squeeze(cx.slice(both, 0, i, 1), {0}); };
  auto number = [&](double v) { return cx.scalar(dtype, v); };
  const Operand length =
      cx.op("sqrt", {cx.mul(number(-2), cx.op("log", {cx.sub(number(1), part(0))}))});
  return cx.mul(length, cx.op("cos", {cx.mul(number(2 * std::numbers::pi), part(1))}));
}

// The type that numbers of type `dtype` are computed in.
DataType computed(DataType dtype) {
  return dtype == f64 ? f64 : f32;
}

using Draw = Operand (*)(NodeContext& cx, const Dims& shape, DataType dtype, const Seed& seed);

// factor x + term
Operands drawn(NodeContext& cx, Draw draw, const Dims& shape, DataType dtype, double factor,
               double term) {
  if (!dtype.is_float()) cx.invalid(cat("dtype=", to_text(dtype)), "a type of floats");
  const DataType wide = computed(dtype);
  const Operand x = draw(cx, shape, wide, float_seed(cx));
  return {cx.cast(cx.add(cx.mul(x, cx.scalar(wide, factor)), cx.scalar(wide, term)), dtype)};
}

Operands random_uniform(NodeContext& cx, const Dims& shape, DataType dtype) {
  const double low = cx.attr_float("low", 0), high = cx.attr_float("high", 1);
  return drawn(cx, uniform, shape, dtype, high - low, low);
}

Operands random_normal(NodeContext& cx, const Dims& shape, DataType dtype) {
  const double mean = cx.attr_float("mean", 0), scale = cx.attr_float("scale", 1);
  return drawn(cx, normal, shape, dtype, scale, mean);
}

using Family = Operands (*)(NodeContext& cx, const Dims& shape, DataType dtype);

template <Family family>
Operands of_shape(NodeContext& cx) {
  if (!cx.has_attr("shape")) cx.invalid("no attribute 'shape'", "the sizes of the result");
  const Ints shape = cx.attr_ints("shape");
  for (const int64_t size : shape) {
    if (size < 0) cx.invalid(cat("shape holds ", size), "sizes of 0 or more");
  }
  return family(cx, Dims(shape.begin(), shape.end()), cx.attr_dtype("dtype", f32));
}

template <Family family>
Operands like(NodeContext& cx) {
  const DataType own = cx.dtype(0);
  return family(cx, cx.dims(0), cx.attr_dtype("dtype", own.is_float() ? own : f32));
}

// 1 with the probability that the operand gives.
Operands bernoulli(NodeContext& cx) {
  const DataType wide = computed(cx.dtype(0));
  const Operand drawn = uniform(cx, cx.dims(0), wide, float_seed(cx));
  const Operand hit = cx.op("less", {drawn, cx.cast(cx.in(0), wide)});
  return {cx.cast(hit, cx.attr_dtype("dtype", cx.dtype(0)))};
}

// Draws classes by their logarithms of probabilities [batch, classes]. A drawn number in [0, total)
// belongs to the first class whose sum of probabilities so far exceeds it.
Operands multinomial(NodeContext& cx) {
  if (cx.rank(0) != 2) cx.invalid(cat("an operand of rank ", cx.rank(0)), "2: batch, classes");
  const DataType wide = computed(cx.dtype(0)), dtype = cx.attr_dtype("dtype", i32);
  if (dtype != i32 && dtype != i64) cx.invalid(cat("dtype=", to_text(dtype)), "int32 or int64");
  const int64_t count = cx.attr_int("sample_size", 1);
  if (count < 0) cx.invalid(cat("sample_size=", count), "0 or more");
  const Dims dims = cx.dims(0);
  const Operand p = cx.op("softmax", {cx.cast(cx.in(0), wide)}, attrs({{"axis", -1}}));
  const Operand sums = cx.op("cumsum", {p}, attrs({{"axis", 1}}));  // [batch, classes]
  const Operand total = cx.reduce("reduce_max", sums, {1}, true);
  const Operand drawn = cx.mul(uniform(cx, {dims[0], count}, wide, float_seed(cx)), total);
  // What follows the last class of some probability has its sum, so it isn't passed.
  const Operand passed = cx.op(
      "logical_and", {cx.op("less_equal", {cx.unsqueeze(sums, {1}), cx.unsqueeze(drawn, {2})}),
                      cx.unsqueeze(cx.op("less", {sums, total}), {1})});
  return {cx.reduce("reduce_sum", cx.cast(passed, dtype), {2}, false)};
}

// Dropout while it trains: elements are dropped with the probability `ratio`, the others divided by
// 1 - ratio. Gives the result and the mask of what is kept.
Operands drop(NodeContext& cx, const Operand& ratio) {
  const DataType wide = computed(cx.dtype(0));
  const Operand r = cx.cast(cx.reshape(ratio, {}), wide);
  const Seed seed{cx.has_attr("seed"), cx.attr_int("seed", 0)};
  const Operand kept = cx.op("greater_equal", {uniform(cx, cx.dims(0), wide, seed), r});
  const Operand scaled = cx.div(cx.cast(cx.in(0), wide), cx.sub(cx.scalar(wide, 1), r));
  const Operand y = cx.op("where", {kept, scaled, cx.scalar(wide, 0)});
  return {cx.cast(y, cx.dtype(0)), kept};
}

// The operand as it is, and a mask of ones. Before version 12, runtimes leave the mask empty.
Operands keep(NodeContext& cx) {
  const DataType mask = cx.version() >= 10 ? boolean : cx.dtype(0);
  return {cx.in(0), cx.full(mask, cx.version() >= 12 ? 1 : 0, cx.dims(0))};
}

Operands dropout(NodeContext& cx) {
  for (const char* name : {"ratio", "is_test", "consumed_inputs"}) cx.ignore(name);
  cx.ignore("seed");
  const Operand ratio = cx.has(1) ? cx.in(1) : cx.scalar(f32, 0.5);
  const std::optional<double> training = cx.has(2) ? cx.number(cx.in(2)) : 0.0;
  if (training == 0.0 || cx.number(ratio) == 0.0) {
    return cx.wants(1) ? keep(cx) : Operands{cx.in(0)};
  }
  if (training) return drop(cx, ratio);
  const Operand both = cx.b.if_(
      cx.op("not_equal", {cx.cast(cx.reshape(cx.in(2), {}), i64), cx.scalar(i64, 0)}),
      [&] { return cx.b.tuple(drop(cx, ratio)); }, [&] { return cx.b.tuple(keep(cx)); });
  return {cx.b.field(both, 0), cx.b.field(both, 1)};
}

}  // namespace

void register_random(OpTable& t) {
  t.add("Bernoulli", 15, bernoulli);
  t.add("Dropout", 1, dropout);
  t.add("Multinomial", 7, multinomial);
  t.add("RandomNormal", 1, of_shape<random_normal>);
  t.add("RandomNormalLike", 1, like<random_normal>);
  t.add("RandomUniform", 1, of_shape<random_uniform>);
  t.add("RandomUniformLike", 1, like<random_uniform>);
}

}  // namespace tenon::onnx
