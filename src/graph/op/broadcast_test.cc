#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Binary = double (*)(double, double);

double floor_mod(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t bits(double x) {
  return static_cast<int64_t>(x);
}

// Integer divisors that are not 0.
Tensor divisor(size_t operand, const Sample& sample, Random& random) {
  const auto* t = type_as<TensorType>(sample.operands[operand]);
  if (operand == 0 || t->dtype.is_float()) return Tensor();
  return random_tensor(t->dtype, sample_shape(sample, operand), random, 1, 9);
}

void compare(const char* name, Binary function, const Fill& fill = nullptr) {
  try_samples(
      name, 120,
      [&](const Trial& t) {
        Nd a(t.operands[0]), b(t.operands[1]);
        Nd want(a.shape.size() >= b.shape.size() ? a.shape : b.shape);
        size_t rank = want.shape.size();
        for (size_t i = 0; i < rank; ++i) {  // numpy's rule, from the last axis on
          int64_t m = i < a.shape.size() ? a.shape[a.shape.size() - 1 - i] : 1;
          int64_t n = i < b.shape.size() ? b.shape[b.shape.size() - 1 - i] : 1;
          want.shape[rank - 1 - i] = m == 1 ? n : m;
        }
        want = Nd(want.shape);
        for_each_index(want.shape, [&](const std::vector<int64_t>& i) {
          want.at(i) = function(a.broadcast(i), b.broadcast(i));
        });
        expect_equal(t.results[0], want);
      },
      fill);
}

TEST(Broadcast, ArithmeticAgreesWithItsDefinition) {
  compare("add", [](double a, double b) { return a + b; });
  compare("sub", [](double a, double b) { return a - b; });
  compare("mul", [](double a, double b) { return a * b; });
  compare("minimum", [](double a, double b) { return std::min(a, b); });
  compare("maximum", [](double a, double b) { return std::max(a, b); });
  compare("atan2", [](double a, double b) { return std::atan2(a, b); });
}

TEST(Broadcast, DivisionsAgreeWithTheirDefinitions) {
  for (const auto& [name, of_floats, of_ints] :
       {std::tuple<const char*, Binary, Binary>{
            "div", [](double a, double b) { return a / b; },
            [](double a, double b) { return std::trunc(a / b); }},
        {"floor_div", [](double a, double b) { return std::floor(a / b); },
         [](double a, double b) { return std::floor(a / b); }},
        {"mod", floor_mod, floor_mod},
        {"rem", [](double a, double b) { return std::fmod(a, b); },
         [](double a, double b) { return std::fmod(a, b); }}}) {
    try_samples(
        name, 120,
        [&, f = of_floats, g = of_ints](const Trial& t) {
          Nd a(t.operands[0]), b(t.operands[1]), want(t.results[0]);
          bool floats = t.results[0].dtype().is_float();
          for_each_index(want.shape, [&](const std::vector<int64_t>& i) {
            want.at(i) = (floats ? f : g)(a.broadcast(i), b.broadcast(i));
          });
          expect_equal(t.results[0], want);
        },
        divisor);
  }
}

TEST(Broadcast, TheQuotientOfF16sIsNotRoundedBeforeItsFloor) {
  const auto halves = [](const std::vector<double>& values) {
    Tensor out = Tensor::empty(std::vector<int64_t>{static_cast<int64_t>(values.size())}, f16);
    char* to = out.data_as<char>();
    for (const double x : values)
      loop::scalar_store(f16, std::exchange(to, to + 2), loop::float_bits(x));
    return out;
  };
  const Tensor a = halves({-4552, -4552, 6.1e-5}), b = halves({-2.5, 1.5, -60000});
  EXPECT_EQ(Nd(run("floor_div", {a, b})).data, (std::vector<double>{1820, -3036, -1}));
}

TEST(Broadcast, ComparisonsAndLogicAgreeWithTheirDefinitions) {
  compare("equal", [](double a, double b) { return a == b ? 1.0 : 0.0; });
  compare("not_equal", [](double a, double b) { return a != b ? 1.0 : 0.0; });
  compare("less", [](double a, double b) { return a < b ? 1.0 : 0.0; });
  compare("less_equal", [](double a, double b) { return a <= b ? 1.0 : 0.0; });
  compare("greater", [](double a, double b) { return a > b ? 1.0 : 0.0; });
  compare("greater_equal", [](double a, double b) { return a >= b ? 1.0 : 0.0; });
  compare("logical_and", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
  compare("logical_or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
  compare("logical_xor", [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; });
}

TEST(Broadcast, BitsAgreeWithTheirDefinition) {
  compare("bitwise_and", [](double a, double b) { return double(bits(a) & bits(b)); });
  compare("bitwise_or", [](double a, double b) { return double(bits(a) | bits(b)); });
  compare("bitwise_xor", [](double a, double b) { return double(bits(a) ^ bits(b)); });
}

Tensor bytes(std::vector<uint8_t> data) {
  return Tensor::copy_of<uint8_t>(std::vector<int64_t>{static_cast<int64_t>(data.size())}, u8,
                                  data);
}

TEST(Broadcast, AShiftPastTheWidthGivesZero) {
  Tensor x = bytes({1, 3, 255, 255}), by = bytes({7, 1, 8, 200});
  EXPECT_EQ(Nd(run("shift_left", {x, by})).data, (std::vector<double>{128, 6, 0, 0}));
  EXPECT_EQ(Nd(run("shift_right", {x, by})).data, (std::vector<double>{0, 1, 0, 0}));
}

TEST(Broadcast, ZeroAsIntegerDivisorIsAnError) {
  EXPECT_THROW(run("div", {bytes({1}), bytes({0})}), Error);
  EXPECT_THROW(run("mod", {bytes({1}), bytes({0})}), Error);
}

Tensor one(DataType dtype, double v) {
  Tensor t = Tensor::empty({1}, dtype);
  loop::scalar_store(dtype, t.data(), dtype.is_float() ? loop::float_bits(v) : int64_t(v));
  return t;
}

TEST(Broadcast, PowIsOfTheBasesType) {
  auto power = [](DataType a, double x, DataType b, double y) {
    Tensor t = run("pow", {one(a, x), one(b, y)});
    EXPECT_EQ(t.dtype(), a);
    return Nd(t).data[0];
  };
  EXPECT_EQ(power(f32, 2, i64, 3), 8);
  EXPECT_EQ(power(i64, 3, f32, 2), 9);
  EXPECT_EQ(power(i32, 2, f32, 0.5), 1);
  EXPECT_EQ(power(i32, -3, i64, 3), -27);
  EXPECT_EQ(power(f64, 9, f32, 0.5), 3);
}

TEST(Broadcast, WhereChoosesBroadcast) {
  try_samples("where", 120, [](const Trial& t) {
    Nd c(t.operands[0]), x(t.operands[1]), y(t.operands[2]), want(t.results[0]);
    for_each_index(want.shape, [&](const std::vector<int64_t>& i) {
      want.at(i) = c.broadcast(i) != 0 ? x.broadcast(i) : y.broadcast(i);
    });
    expect_equal(t.results[0], want);
  });
}

TEST(Broadcast, ClipTakesTheMaximumFirst) {
  try_samples("clip", 120, [](const Trial& t) {
    Nd want(t.operands[0]);
    for (double& v : want.data) {
      if (t.operands[1]) v = std::max(v, Nd(t.operands[1]).data[0]);
      if (t.operands[2]) v = std::min(v, Nd(t.operands[2]).data[0]);
    }
    expect_equal(t.results[0], want);
  });
}

TEST(Broadcast, TypeErrorsNameWhatDiffers) {
  EXPECT_EQ(type_error("add", {tensor_type(f32, {2}), tensor_type(f64, {2})}),
            "operator 'add': operand 'b' is f64, but operand 'a' is f32; they must have one "
            "dtype");
  EXPECT_EQ(type_error("add", {tensor_type(f32, {2}), tensor_type(f32, {3})}),
            "operator 'add': sizes of axis -1 to broadcast: 2 and 3 differ and neither is 1");
  EXPECT_EQ(
      type_error("where", {tensor_type(f32, {2}), tensor_type(f32, {2}), tensor_type(f32, {})}),
      "operator 'where': operand 'condition' is f32, expected bool");
}

TEST(Broadcast, ScalarsGiveScalars) {
  register_operators();
  TypeRef sum = infer_call(make_call("add", {scalar_type(i64), scalar_type(i64)}, {}));
  EXPECT_EQ(to_text(sum), "i64");
  TypeRef less = infer_call(make_call("less", {scalar_type(f32), scalar_type(f32)}, {}));
  EXPECT_EQ(to_text(less), "bool");
}

}  // namespace
}  // namespace tenon::graph
