// Products with constants, as onednn.matmul and convolutions of 1 by 1.
#include <gtest/gtest.h>

#include <random>

#include "device/parallel.h"
#include "device/preparation.h"
#include "library/onednn/constant_product.h"
#include "library/onednn/onednn_testing.h"

namespace tenon {
namespace {

struct ProductCall {
  Tensor a, b, bias, residual, out;
  bool transposed = false;
  int64_t activation = 0;
  double alpha = 0, beta = 0;

  // Small integers, so that every order of the sums gives the same.
  ProductCall(int64_t rows, int64_t depth, int64_t columns, bool is_transposed)
      : a(numbers({rows, depth}, 3)),
        b(numbers(is_transposed ? std::vector{columns, depth} : std::vector{depth, columns}, 7)
              .as_constant()),
        out(ones({rows, columns})),
        transposed(is_transposed) {}

  void run() const {
    const auto floats = [](const Tensor& t) { return t ? t.data_as<float>() : nullptr; };
    const onednn::ConstantProduct product{a.dim(0),
                                          a.dim(1),
                                          out.dim(1),
                                          floats(a),
                                          b,
                                          transposed,
                                          floats(bias),
                                          floats(residual),
                                          static_cast<library::Activation>(activation),
                                          static_cast<float>(alpha),
                                          static_cast<float>(beta),
                                          floats(out)};
    if (onednn::fits_constant_product(product)) {
      onednn::run_constant_product(product);
    } else {
      ASSERT_EQ(run_function(), "a value");
    }
  }

  std::string run_function() const {
    const Shape b_perm = transposed ? Shape({1, 0}) : Shape({0, 1});
    return outcome("onednn.matmul", a, b, ConvolutionCall::any(bias),
                   ConvolutionCall::any(residual), out, Shape({0, 1}), b_perm, activation, alpha,
                   beta);
  }

  float expected(int64_t row, int64_t column) const {
    const int64_t depth = a.dim(1), columns = out.dim(1);
    float sum = 0;
    for (int64_t d = 0; d < depth; ++d) {
      sum += a.data_as<float>()[row * depth + d] *
             b.data_as<float>()[transposed ? column * depth + d : d * columns + column];
    }
    if (bias) sum += bias.data_as<float>()[column];
    if (residual) sum += residual.data_as<float>()[row * columns + column];
    if (activation == 1) sum = std::max(sum, 0.f);
    if (activation == 2) {
      sum = std::clamp(sum, static_cast<float>(alpha), static_cast<float>(beta));
    }
    return sum;
  }

  void check() const {
    run();
    const int64_t columns = out.dim(1), count = out.count();
    for (int64_t at = 0; at < count; at += 1 + count / 5000) {
      ASSERT_EQ(out.data_as<float>()[at], expected(at / columns, at % columns))
          << a.dim(0) << " x " << a.dim(1) << " x " << columns << " at " << at;
    }
  }
};

TEST(ConstantProduct, AgreesWithItsDefinition) {
  std::mt19937 rng(7);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(rng);
  };
  for (int i = 0; i < 200; ++i) {
    ProductCall call(pick(1, 300), pick(1, 60), pick(1, 200), pick(0, 1));
    if (pick(0, 1)) call.bias = numbers({call.out.dim(1)}, 1);
    if (pick(0, 1)) call.residual = numbers({call.out.dim(0), call.out.dim(1)}, 11);
    call.activation = pick(0, 2);
    call.alpha = -5;
    call.beta = 7;
    const ThreadsScope threads(static_cast<int32_t>(pick(1, 3)));
    call.check();
  }
}

// A deep one is a sum of shallower ones, whose last panels aren't whole.
TEST(ConstantProduct, OfGreatDepth) {
  for (const int64_t depth : {1024, 1025, 3000, 4097}) {
    for (const int64_t columns : {64, 72, 100, 131}) {
      ProductCall call(130, depth, columns, columns % 8 != 0);
      call.bias = numbers({columns}, 1);
      call.residual = numbers({130, columns}, 11);
      call.activation = 1;
      call.check();
    }
  }
}

TEST(ConstantProduct, InPlaceOfTheResidual) {
  ProductCall call(100, 2000, 96, false);
  call.residual = numbers({100, 96}, 11);
  call.check();
  const Tensor expected = std::exchange(call.out, numbers({100, 96}, 11));
  call.residual = call.out;
  call.run();
  for (int64_t i = 0; i < expected.count(); ++i)
    ASSERT_EQ(call.out.data_as<float>()[i], expected.data_as<float>()[i]);
}

TEST(ConstantProduct, DoesNotDependOnThreads) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  for (const int64_t rows : {2, 7, 150, 700}) {
    ProductCall call(rows, 1500, 200, false);
    for (const Tensor* t : {&call.a, &call.b}) {
      for (int64_t i = 0; i < t->count(); ++i) t->data_as<float>()[i] = normal(rng);
    }
    std::vector<float> expected;
    for (const int32_t count : {1, 2, 4}) {
      const ThreadsScope threads(count);
      call.run();
      const std::vector<float> found(call.out.data_as<float>(),
                                     call.out.data_as<float>() + call.out.count());
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << rows << " rows";
    }
  }
}

TEST(ConstantProduct, KeepsNaNAndInfinity) {
  ProductCall call(12, 8, 32, false);
  call.a.data_as<float>()[0] = NAN;
  call.a.data_as<float>()[8] = INFINITY;
  call.run();
  for (int64_t c = 0; c < 32; ++c) EXPECT_TRUE(std::isnan(call.out.data_as<float>()[c]));
  EXPECT_FALSE(std::isfinite(call.out.data_as<float>()[32]));
  EXPECT_TRUE(std::isfinite(call.out.data_as<float>()[64]));
}

TEST(ConstantProduct, IsStoppedBetweenPanels) {
  const ThreadsScope threads(1);
  ProductCall call(1200, 1024, 1024, false);
  CountingPoller poller;
  const Poller::Scope scope(&poller);
  ASSERT_EQ(call.run_function(), "a value");
  EXPECT_GE(poller.polls, 10);
  poller = {};
  poller.stop_at = 5;
  EXPECT_EQ(call.run_function(), "stopped");
}

TEST(ConstantProduct, IsAConvolutionOf1By1) {
  ConvolutionCall c;
  c.x = numbers({2, 90, 70, 40}, 3);
  c.weights = numbers({1, 1, 40, 50}, 7).as_constant();
  c.bias = numbers({50}, 1);
  c.residual = numbers({2, 90, 70, 50}, 11);
  c.out = ones({2, 90, 70, 50});
  c.pads = {0, 0, 0, 0};
  c.activation = 1;
  ASSERT_EQ(c.run(), "a value");
  for (int64_t at = 0; at < c.out.count(); ++at) {
    float sum = c.bias.data_as<float>()[at % 50] + c.residual.data_as<float>()[at];
    for (int64_t i = 0; i < 40; ++i) {
      sum += c.x.data_as<float>()[at / 50 * 40 + i] * c.weights.data_as<float>()[i * 50 + at % 50];
    }
    ASSERT_EQ(c.out.data_as<float>()[at], std::max(sum, 0.f)) << at;
  }
}

TEST(ConstantProduct, IsPackedInAdvance) {
  const ProductCall product(64, 512, 512, /*is_transposed=*/false);
  register_onednn();
  const int64_t before = packings();
  {
    const PreparationScope scope;
    EXPECT_EQ(product.run_function(), "a value");
  }
  EXPECT_EQ(packings(), before + 1);
  EXPECT_EQ(product.out.data_as<float>()[0], 1) << "computed";
  EXPECT_EQ(product.run_function(), "a value");
  EXPECT_EQ(packings(), before + 1);
  EXPECT_EQ(product.out.data_as<float>()[0], product.expected(0, 0));
}

}  // namespace
}  // namespace tenon
