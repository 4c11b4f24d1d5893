// Winograd's convolutions, against sums in f64 and against oneDNN's.
#include "library/onednn/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "device/parallel.h"
#include "device/preparation.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/onednn_testing.h"

namespace tenon {
namespace {

using library::Activation;
using onednn::WinogradKernels;

Tensor normal(std::vector<int64_t> shape, uint32_t seed) {
  Tensor t = Tensor::empty(shape, f32);
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution;
  for (int64_t i = 0; i < t.count(); ++i) t.data_as<float>()[i] = distribution(engine);
  return t;
}

ConvolutionCall call_of(int64_t images, int64_t height, int64_t width, int64_t channels,
                        int64_t filters, std::vector<int64_t> pads) {
  ConvolutionCall c;
  c.x = normal({images, height, width, channels}, 1);
  c.weights = normal({3, 3, channels, filters}, 2).as_constant();
  c.bias = normal({filters}, 3);
  c.out = ones({images, height + pads[0] + pads[2] - 2, width + pads[1] + pads[3] - 2, filters});
  c.pads = std::move(pads);
  return c;
}

double applied(const ConvolutionCall& c, double y) {
  switch (static_cast<Activation>(c.activation)) {
    case Activation::Relu:
      return std::max(y, 0.0);
    case Activation::Clip:
      return std::min(std::max(y, c.alpha), c.beta);
    default:
      return y;
  }
}

// By the definition.
double element(const ConvolutionCall& c, int64_t image, int64_t row, int64_t column, int64_t k) {
  const int64_t channels = c.x.dim(3), filters = c.out.dim(3);
  double sum = c.bias ? double{c.bias.data_as<float>()[k]} : 0;
  if (c.residual) {
    sum +=
        c.residual
            .data_as<float>()[((image * c.out.dim(1) + row) * c.out.dim(2) + column) * filters + k];
  }
  for (int64_t tap = 0; tap < 9; ++tap) {
    const int64_t y = row - c.pads[0] + tap / 3, x = column - c.pads[1] + tap % 3;
    if (y < 0 || x < 0 || y >= c.x.dim(1) || x >= c.x.dim(2)) continue;
    const float* pixel =
        c.x.data_as<float>() + ((image * c.x.dim(1) + y) * c.x.dim(2) + x) * channels;
    for (int64_t i = 0; i < channels; ++i)
      sum += double{pixel[i]} * c.weights.data_as<float>()[(tap * channels + i) * filters + k];
  }
  return applied(c, sum);
}

// The greatest error relative to the greatest element, of every element or of every `step`th.
double error_of(const ConvolutionCall& c, int64_t step = 1) {
  const int64_t height = c.out.dim(1), width = c.out.dim(2), filters = c.out.dim(3);
  double error = 0, greatest = 0;
  for (int64_t i = 0; i < c.out.count(); i += step) {
    const int64_t pixel = i / filters;
    const double expected =
        element(c, pixel / (height * width), pixel / width % height, pixel % width, i % filters);
    error = std::max(error, std::fabs(c.out.data_as<float>()[i] - expected));
    greatest = std::max(greatest, std::fabs(expected));
  }
  return error / greatest;
}

bool run_with(const ConvolutionCall& c, const WinogradKernels& kernels) {
  const Shape strides(c.strides), dilations(c.dilations), pads(c.pads);
  const onednn::Convolution convolution{c.x,
                                        c.weights,
                                        c.bias,
                                        c.residual,
                                        c.out,
                                        strides,
                                        dilations,
                                        pads,
                                        c.groups,
                                        static_cast<Activation>(c.activation),
                                        static_cast<float>(c.alpha),
                                        static_cast<float>(c.beta)};
  EXPECT_TRUE(onednn::fits_winograd(convolution));
  return onednn::run_winograd(convolution, kernels);
}

template <class F>
void with_all_kernels(F&& f) {
  for (const onednn::KernelSet* set : onednn::kernel_sets()) {
    for (const WinogradKernels& kernels : set->winograd) {
      SCOPED_TRACE(cat("tiles of ", kernels.tile, ", panels of ", kernels.product->panel));
      f(kernels);
    }
  }
}

// Tiles that are cut off at the bottom and right, and those of one row or column.
TEST(Winograd, ComputesEverySize) {
  with_all_kernels([](const WinogradKernels& kernels) {
    for (int64_t height = 1; height <= 14; ++height) {
      for (int64_t width : {1, 2, 3, 5, 8, 20}) {
        const ConvolutionCall c = call_of(2, height, width, 16, 32, {1, 1, 1, 1});
        EXPECT_TRUE(run_with(c, kernels));
        EXPECT_LE(error_of(c), 2e-6) << height << " x " << width;
      }
    }
  });
}

TEST(Winograd, ComputesEveryPadding) {
  with_all_kernels([](const WinogradKernels& kernels) {
    for (const std::vector<int64_t>& pads : std::vector<std::vector<int64_t>>{
             {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {7, 2, 5, 9}}) {
      const ConvolutionCall c = call_of(3, 9, 7, 32, 16, pads);
      EXPECT_TRUE(run_with(c, kernels));
      EXPECT_LE(error_of(c), 2e-6) << pads[0] << pads[1] << pads[2] << pads[3];
    }
  });
}

// Panels of every width, and blocks of every number of rows.
TEST(Winograd, ComputesEveryNumberOfChannelsAndFilters) {
  with_all_kernels([](const WinogradKernels& kernels) {
    for (int64_t channels : {16, 48, 80}) {
      for (int64_t filters : {16, 32, 48, 64, 80, 144}) {
        for (int64_t tiles = 1; tiles <= 13; tiles += 2) {
          const ConvolutionCall c =
              call_of(1, kernels.tile, tiles * kernels.tile, channels, filters, {1, 1, 1, 1});
          EXPECT_TRUE(run_with(c, kernels));
          EXPECT_LE(error_of(c, 7), 4e-6) << channels << " x " << filters << ", " << tiles;
        }
      }
    }
  });
}

TEST(Winograd, AppliesBiasResidualAndActivation) {
  with_all_kernels([](const WinogradKernels& kernels) {
    for (bool bias : {false, true}) {
      for (bool residual : {false, true}) {
        for (Activation activation : {Activation::None, Activation::Relu, Activation::Clip}) {
          ConvolutionCall c = call_of(1, 7, 6, 16, 16, {1, 1, 1, 1});
          if (!bias) c.bias = Tensor();
          if (residual) c.residual = normal({1, 7, 6, 16}, 4);
          c.activation = static_cast<int64_t>(activation);
          c.alpha = -3;
          c.beta = 5;
          EXPECT_TRUE(run_with(c, kernels));
          EXPECT_LE(error_of(c), 4e-6);
        }
      }
    }
  });
}

// The bounds that docs/semantics.md states.
TEST(Winograd, KeepsItsBoundsOnTheError) {
  with_all_kernels([](const WinogradKernels& kernels) {
    for (int64_t channels : {64, 256, 512}) {
      const ConvolutionCall c = call_of(1, 16, 16, channels, 64, {1, 1, 1, 1});
      EXPECT_TRUE(run_with(c, kernels));
      EXPECT_LE(error_of(c, 11), kernels.tile == 4 ? 5e-6 : 2e-6) << channels;
    }
  });
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

// Threads have blocks of their own, or share one.
TEST(Winograd, GivesTheSameBitsWithAnyNumberOfThreads) {
  with_all_kernels([](const WinogradKernels& kernels) {
    for (int64_t size : {12, 40, 95}) {
      ConvolutionCall c = call_of(1, size, size, 64, 96, {1, 1, 1, 1});
      const Tensor expected = c.out;
      {
        const ThreadsScope scope(1);
        EXPECT_TRUE(run_with(c, kernels));
      }
      for (int32_t threads : {2, 3, 8}) {
        const ThreadsScope scope(threads);
        c.out = ones({1, size, size, 96});
        EXPECT_TRUE(run_with(c, kernels));
        EXPECT_TRUE(same_bits(c.out, expected)) << size << " on " << threads;
      }
    }
  });
}

// What is infinite, NaN or overflows is computed as without Winograd, to the bit.
TEST(Winograd, LeavesWhatIsNotFiniteToTheDirectConvolution) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 3e38f}) {
    for (bool in_weights : {false, true}) {
      for (int64_t size : {16, 40}) {
        ConvolutionCall c = call_of(1, size, size, 32, 32, {1, 1, 1, 1});
        Tensor changed = in_weights ? normal({3, 3, 32, 32}, 2) : c.x;
        changed.data_as<float>()[changed.count() / 2] = bad;
        if (in_weights) c.weights = changed.as_constant();
        with_all_kernels(
            [&](const WinogradKernels& kernels) { EXPECT_FALSE(run_with(c, kernels)); });
        ConvolutionCall direct = c;
        direct.winograd = 0;
        direct.out = ones({1, size, size, 32});
        EXPECT_EQ(c.run(), "a value");
        EXPECT_EQ(direct.run(), "a value");
        EXPECT_TRUE(same_bits(c.out, direct.out)) << bad << " in " << in_weights << ", " << size;
      }
    }
  }
}

// A window of 0 weights times infinity is NaN.
TEST(Winograd, FindsInfinitiesThatMeetZeros) {
  with_all_kernels([](const WinogradKernels& kernels) {
    ConvolutionCall c = call_of(1, 8, 8, 16, 16, {1, 1, 1, 1});
    std::fill_n(c.weights.data_as<float>(), c.weights.count(), 0.f);
    EXPECT_TRUE(run_with(c, kernels));
    for (int64_t pixel = 0; pixel < 64; ++pixel) {
      float& x = c.x.data_as<float>()[pixel * 16 + pixel % 16];
      const float before = std::exchange(x, std::numeric_limits<float>::infinity());
      EXPECT_FALSE(run_with(c, kernels)) << pixel;
      x = before;
    }
  });
}

TEST(Winograd, IsChosenOnlyWhereAllowed) {
  if (onednn::kernel_set().winograd.empty()) GTEST_SKIP() << "needs AVX2";
  ConvolutionCall allowed = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1}), forbidden = allowed;
  forbidden.out = ones({1, 40, 40, 32});
  forbidden.winograd = 0;
  EXPECT_EQ(allowed.run(), "a value");
  EXPECT_EQ(forbidden.run(), "a value");
  EXPECT_FALSE(same_bits(allowed.out, forbidden.out));
  EXPECT_LE(error_of(allowed), 2e-6);
  EXPECT_LE(error_of(forbidden), 1e-6);
}

// Everything else is computed directly, also where Winograd is allowed.
TEST(Winograd, FitsOnlySomeConvolutions) {
  auto directly = [](const ConvolutionCall& c) {
    ConvolutionCall direct = c;
    direct.winograd = 0;
    direct.out = Tensor::empty(c.out.shape(), f32);
    EXPECT_EQ(c.run(), "a value");
    EXPECT_EQ(direct.run(), "a value");
    return same_bits(c.out, direct.out);
  };
  EXPECT_TRUE(directly(call_of(1, 40, 40, 3, 32, {1, 1, 1, 1})));
  EXPECT_TRUE(directly(call_of(1, 40, 40, 70, 32, {1, 1, 1, 1})));
  EXPECT_TRUE(directly(call_of(1, 40, 40, 32, 20, {1, 1, 1, 1})));
  EXPECT_TRUE(directly(call_of(1, 3, 3, 32, 32, {1, 1, 1, 1})));  // too few tiles
  ConvolutionCall strided = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1}), dilated = strided;
  strided.strides = {2, 1};
  strided.out = ones({1, 20, 40, 32});
  EXPECT_TRUE(directly(strided));
  dilated.dilations = {1, 2};
  dilated.out = ones({1, 40, 38, 32});
  EXPECT_TRUE(directly(dilated));
  ConvolutionCall changing = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1});
  changing.weights = normal({3, 3, 32, 32}, 2);  // no constant
  EXPECT_TRUE(directly(changing));
  ConvolutionCall tanh = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1});
  tanh.activation = static_cast<int64_t>(Activation::Tanh);
  EXPECT_TRUE(directly(tanh));
  ConvolutionCall grouped = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1});
  grouped.weights = normal({3, 3, 16, 32}, 2).as_constant();
  grouped.groups = 2;
  EXPECT_TRUE(directly(grouped));
  ConvolutionCall empty = call_of(0, 40, 40, 32, 32, {1, 1, 1, 1});
  EXPECT_EQ(empty.run(), "a value");
}

TEST(Winograd, RefusesSizesThatDoNotFit) {
  ConvolutionCall c = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1});
  c.out = ones({1, 39, 40, 32});
  EXPECT_EQ(c.run(), "onednn.convolution: out has size 39 on axis 1");
  ConvolutionCall bias = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1});
  bias.bias = ones({31});
  EXPECT_EQ(bias.run(), "onednn.convolution: out or bias does not fit x and weights");
}

TEST(Winograd, PollsAndStops) {
  if (onednn::kernel_set().winograd.empty()) GTEST_SKIP() << "needs AVX2";
  const ConvolutionCall c = call_of(1, 60, 60, 64, 64, {1, 1, 1, 1});
  const ThreadsScope one(1);  // a loop's threads poll for the call's context
  CountingPoller poller;
  const Poller::Scope scope(&poller);
  EXPECT_EQ(c.run(), "a value");
  EXPECT_GE(poller.polls, 10);
  for (int at : {1, 5, poller.polls / 2}) {
    poller.polls = 0;
    poller.stop_at = at;
    EXPECT_EQ(c.run(), "stopped");
  }
}

// Of the same elements in other shapes, weights are others.
TEST(Winograd, TransformsWeightsOncePerShape) {
  if (onednn::kernel_set().winograd.empty()) GTEST_SKIP() << "needs AVX2";
  register_onednn();
  const Tensor all = normal({9 * 32 * 64}, 5).as_constant();
  for (const auto& [channels, filters] : {std::pair<int64_t, int64_t>{32, 64}, {64, 32}}) {
    ConvolutionCall c = call_of(1, 40, 40, channels, filters, {1, 1, 1, 1});
    const std::vector<int64_t> shape = {3, 3, channels, filters};
    c.weights = Tensor::view(all.data(), shape, f32, all.ref()).as_constant();
    ASSERT_EQ(c.run(), "a value");
    const Tensor found = c.out;
    c.winograd = 0;
    c.out = ones({1, 40, 40, filters});
    ASSERT_EQ(c.run(), "a value");
    for (int64_t i = 0; i < found.count(); ++i) {
      ASSERT_NEAR(found.data_as<float>()[i], c.out.data_as<float>()[i], 1e-3);
    }
  }
}

TEST(Winograd, TransformsWeightsOncePerConstant) {
  if (onednn::kernel_set().winograd.empty()) GTEST_SKIP() << "needs AVX2";
  register_onednn();
  auto kept = [] { return function_named("onednn.packed_count")().as<int64_t>(); };
  function_named("onednn.forget_unused")();
  const int64_t before = packings(), kept_before = kept();
  {
    ConvolutionCall c = call_of(1, 40, 40, 32, 32, {1, 1, 1, 1});
    {
      const PreparationScope scope;
      EXPECT_EQ(c.run(), "a value");
      EXPECT_EQ(packings(), before + 1);
      EXPECT_EQ(c.out.data_as<float>()[0], 1) << "computed";
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(c.run(), "a value");
    EXPECT_EQ(packings(), before + 1);
    c.x = normal({1, 30, 50, 32}, 5);
    c.out = ones({1, 30, 50, 32});
    EXPECT_EQ(c.run(), "a value");
    EXPECT_EQ(packings(), before + 1);
    EXPECT_EQ(kept(), kept_before + 1);
  }
  function_named("onednn.forget_unused")();
  EXPECT_EQ(kept(), kept_before);
}

}  // namespace
}  // namespace tenon
