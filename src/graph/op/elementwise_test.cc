#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

double sign(double x) {
  return std::isnan(x) ? x : (x > 0) - (x < 0);
}

TEST(Elementwise, FunctionsAgreeWithTheirDefinitions) {
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"neg", [](double x) { return -x; }},
      {"abs", [](double x) { return std::fabs(x); }},
      {"sign", sign},
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"trunc", [](double x) { return std::trunc(x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"reciprocal", [](double x) { return 1 / x; }},
      {"exp", [](double x) { return std::exp(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tan", [](double x) { return std::tan(x); }},
      {"asin", [](double x) { return std::asin(x); }},
      {"acos", [](double x) { return std::acos(x); }},
      {"atan", [](double x) { return std::atan(x); }},
      {"sinh", [](double x) { return std::sinh(x); }},
      {"cosh", [](double x) { return std::cosh(x); }},
      {"asinh", [](double x) { return std::asinh(x); }},
      {"acosh", [](double x) { return std::acosh(x); }},
      {"atanh", [](double x) { return std::atanh(x); }},
      {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"bitwise_not", [](double x) { return -x - 1; }},
      {"is_nan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
  };
  for (const auto& [name, function] : functions) {
    try_samples(name, 40, [&](const Trial& t) {
      Nd want(t.operands[0]);
      for (double& v : want.data) v = function(v);
      expect_equal(t.results[0], want);
    });
  }
}

TEST(Elementwise, RoundTakesHalvesToTheEvenInteger) {
  std::vector<float> x = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f};
  Tensor y = run("round", {Tensor::copy_of<float>(std::vector<int64_t>{5}, f32, x)});
  EXPECT_EQ(Nd(y).data, (std::vector<double>{0, 2, 2, 0, -2}));
}

TEST(Elementwise, SoftplusDoesNotOverflow) {
  std::vector<float> x = {1000, -1000, INFINITY, -INFINITY, NAN};
  Nd y(run("softplus", {Tensor::copy_of<float>(std::vector<int64_t>{5}, f32, x)}));
  EXPECT_EQ(y.data[0], 1000);
  EXPECT_EQ(y.data[1], 0);
  EXPECT_EQ(y.data[2], INFINITY);
  EXPECT_EQ(y.data[3], 0);
  EXPECT_TRUE(std::isnan(y.data[4]));
}

TEST(Elementwise, SoftplusKeepsTheDigitsOfSmallResults) {
  const std::vector<float> x = {-1, -5, -10, -20, -80};
  const Nd y(run("softplus", {Tensor::copy_of<float>(std::vector<int64_t>{5}, f32, x)}));
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::log1p(std::exp(static_cast<double>(x[i])));
    EXPECT_NEAR(y.data[i], want, 4e-7 * want) << x[i];
  }
}

Tensor specials() {
  std::vector<float> x = {INFINITY, -INFINITY, NAN, 3e9f, -3e9f, 2.9f, -2.9f, 0};
  return Tensor::copy_of<float>(std::vector<int64_t>{8}, f32, x);
}

TEST(Elementwise, CastToIntegerTruncatesAndSaturates) {
  Nd y(run("cast", {specials()}, attrs({{"dtype", i32}})));
  EXPECT_EQ(y.data, (std::vector<double>{2147483647, -2147483648.0, 0, 2147483647, -2147483648.0, 2,
                                         -2, 0}));
  Nd u(run("cast", {specials()}, attrs({{"dtype", u8}})));
  EXPECT_EQ(u.data, (std::vector<double>{255, 0, 0, 255, 0, 2, 0, 0}));
}

TEST(Elementwise, CastToBoolIsWhetherNotZero) {
  Nd y(run("cast", {specials()}, attrs({{"dtype", boolean}})));
  EXPECT_EQ(y.data, (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 0}));
}

TEST(Elementwise, CastAgreesForEveryPairOfTypes) {
  try_samples("cast", 300, [&](const Trial& t) {
    Nd want(t.operands[0]);
    DataType to = t.attrs.find("dtype")->as<DataType>();
    const bool saturates = t.operands[0].dtype().is_float() && to.is_int();
    const int digits = to.bits - (to.is_signed_int() ? 1 : 0);
    for (double& v : want.data) {
      if (to.is_bool()) {
        v = v != 0;
      } else if (to.is_narrow_float()) {
        v = round_to(to, v);
      } else if (!to.is_float()) {
        v = std::isnan(v) ? 0 : std::trunc(v);
      }
      if (saturates) {
        v = std::clamp(v, to.is_signed_int() ? -std::ldexp(1, digits) : 0,
                       std::ldexp(1, digits) - 1);
      }
    }
    expect_equal(t.results[0], want);
  });
}

// Compares the memory, in which the bits are the same. A NaN may have other bits.
TEST(Elementwise, BitCastKeepsTheBits) {
  try_samples("bit_cast", 300, [&](const Trial& t) {
    const Tensor &x = t.operands[0], &y = t.results[0];
    const Nd values(y);
    ASSERT_EQ(x.dtype().bytes(), y.dtype().bytes());
    for (int64_t i = 0; i < x.count(); ++i) {
      if (std::isnan(values.data[static_cast<size_t>(i)])) continue;
      const int64_t at = i * x.dtype().bytes();
      EXPECT_EQ(std::memcmp(x.data_as<char>() + at, y.data_as<char>() + at,
                            static_cast<size_t>(x.dtype().bytes())),
                0);
    }
  });
  std::vector<float> x = {1, -0.0f, INFINITY};
  Nd y(run("bit_cast", {Tensor::copy_of<float>(std::vector<int64_t>{3}, f32, x)},
           attrs({{"dtype", i32}})));
  EXPECT_EQ(y.data, (std::vector<double>{0x3f800000, INT32_MIN, 0x7f800000}));
}

TEST(Elementwise, IsInfTellsTheSignsAskedFor) {
  auto count = [](bool negative, bool positive) {
    Nd y(run("is_inf", {specials()},
             attrs({{"detect_negative", negative}, {"detect_positive", positive}})));
    return y.data;
  };
  EXPECT_EQ(count(true, true), (std::vector<double>{1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(count(true, false), (std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(count(false, true), (std::vector<double>{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(count(false, false), std::vector<double>(8, 0));
}

TEST(Elementwise, TypeErrorsNameTheOperatorAndTheOperand) {
  EXPECT_EQ(type_error("bit_cast", {tensor_type(f32, {2})}, attrs({{"dtype", i64}})),
            "operator 'bit_cast': 'dtype' is i64, expected a number of 32 bits");
  EXPECT_EQ(type_error("bit_cast", {tensor_type(c128, {2})}, attrs({{"dtype", c64}})),
            "operator 'bit_cast': 'dtype' is c64, expected a number of 128 bits");
  EXPECT_EQ(type_error("exp", {tensor_type(i32, {2})}),
            "operator 'exp': operand 'x' is i32, expected a float");
  EXPECT_EQ(type_error("neg", {tensor_type(boolean, {2})}),
            "operator 'neg': operand 'x' is bool, expected a number");
  EXPECT_EQ(type_error("cast", {tensor_type(f32, {})}, attrs({{"dtype", DataType(kDLInt, 1)}})),
            "operator 'cast': 'dtype' is i1, expected any element type but c64, c128 and string");
}

}  // namespace
}  // namespace tenon::graph
