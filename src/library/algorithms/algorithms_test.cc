#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "library/algorithms/register.h"
#include "library/argument/call_testing.h"
#include "object/library.h"
#include "object/shape.h"

namespace tenon::algorithms {
namespace {

using namespace testing_calls;

// Registers the functions before any test calls one.
const Module library = (register_algorithms(), load_library("tenon_algorithms", {}));

TEST(Nonzero, GivesAColumnPerElementInRowMajorOrder) {
  Tensor y = result("tenon.nonzero", floats({2, 3}, {1, 0, -0.0f, NAN, 0, 2}));
  EXPECT_EQ(shape_of(y), (Ints{2, 3}));
  EXPECT_EQ(data_of<int64_t>(y), (Ints{0, 1, 1, 0, 0, 2}));
}

TEST(Nonzero, OfAScalarHasOneRow) {
  EXPECT_EQ(shape_of(result("tenon.nonzero", floats({}, {3}))), (Ints{1, 1}));
  EXPECT_EQ(shape_of(result("tenon.nonzero", floats({}, {0}))), (Ints{1, 0}));
  EXPECT_EQ(shape_of(result("tenon.nonzero", floats({0, 4}, {}))), (Ints{2, 0}));
}

TEST(Nonzero, OfComplexNumbersTakesBothParts) {
  const Tensor x = tensor<float>(c64, {4}, {0, 0, 0, 2, -0.0f, 0, NAN, 0});
  EXPECT_EQ(data_of<int64_t>(result("tenon.nonzero", x)), (Ints{1, 3}));
  const Tensor y = tensor<double>(c128, {3}, {0, 1, 0, 0, 1, 0});
  EXPECT_EQ(data_of<int64_t>(result("tenon.nonzero", y)), (Ints{0, 2}));
}

TEST(Topk, TakesTheGreatestInOrderAndTheFirstOfEqualOnes) {
  Tensor x = floats({2, 4}, {1, 3, 3, 2, 5, 5, 4, NAN});
  EXPECT_EQ(data_of<int64_t>(part(1, "tenon.topk", x, 2, -1, true, true)), (Ints{1, 2, 3, 0}));
  EXPECT_EQ(data_of<float>(part(0, "tenon.topk", x, 2, 1, false, true)), (Floats{1, 2, 4, 5}));
}

TEST(Topk, RunsAlongAnyAxis) {
  Tensor x = floats({3, 2}, {1, 6, 2, 5, 3, 4});
  Tensor values = part(0, "tenon.topk", x, 2, 0, true, true);
  EXPECT_EQ(shape_of(values), (Ints{2, 2}));
  EXPECT_EQ(data_of<float>(values), (Floats{3, 6, 2, 5}));
}

TEST(Topk, RefusesMoreThanThereAre) {
  EXPECT_EQ(failure("tenon.topk", floats({2}, {1, 2}), 3, 0, true, true),
            "tenon.topk: k is 3 of 2 elements");
  EXPECT_EQ(failure("tenon.topk", floats({2}, {1, 2}), 1, 1, true, true),
            "tenon.topk: axis 1 of a tensor of rank 1");
}

TEST(Compress, KeepsSlicesAndDropsWhatTheConditionLacks) {
  Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor condition = tensor<uint8_t>(boolean, {2}, {0, 1});
  EXPECT_EQ(data_of<float>(result("tenon.compress", x, condition, 1, false)), (Floats{2, 5}));
  EXPECT_EQ(data_of<float>(result("tenon.compress", x, condition, 0, false)), (Floats{4, 5, 6}));
  EXPECT_EQ(data_of<float>(result("tenon.compress", x, condition, 0, true)), (Floats{2}));
  EXPECT_EQ(failure("tenon.compress", floats({1}, {1}), condition, 0, false),
            "tenon.compress: 'condition' has 2 entries for 1 slices");
}

TEST(Unique, SortsAndCounts) {
  Tensor x = floats({6}, {2, 1, 1, 3, 4, 3});
  EXPECT_EQ(data_of<float>(part(0, "tenon.unique", x, 0, true, true)), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(data_of<int64_t>(part(1, "tenon.unique", x, 0, true, true)), (Ints{1, 0, 3, 4}));
  EXPECT_EQ(data_of<int64_t>(part(2, "tenon.unique", x, 0, true, true)), (Ints{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(data_of<int64_t>(part(3, "tenon.unique", x, 0, true, true)), (Ints{2, 1, 2, 1}));
}

TEST(Unique, KeepsTheOrderOfAppearance) {
  Tensor x = floats({6}, {2, 1, 1, 3, 4, 3});
  EXPECT_EQ(data_of<float>(part(0, "tenon.unique", x, 0, true, false)), (Floats{2, 1, 3, 4}));
  EXPECT_EQ(data_of<int64_t>(part(1, "tenon.unique", x, 0, true, false)), (Ints{0, 1, 3, 4}));
  EXPECT_EQ(data_of<int64_t>(part(2, "tenon.unique", x, 0, true, false)), (Ints{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(data_of<int64_t>(part(3, "tenon.unique", x, 0, true, false)), (Ints{1, 2, 2, 1}));
}

TEST(Unique, OrdersComplexNumbersByTheirParts) {
  const Tensor x = tensor<double>(c128, {5}, {2, 1, 1, 5, 2, 0, 1, 5, 1, -1});
  using Complex = std::complex<double>;
  EXPECT_EQ(data_of<Complex>(part(0, "tenon.unique", x, 0, true, true)),
            (std::vector<Complex>{{1, -1}, {1, 5}, {2, 0}, {2, 1}}));
  EXPECT_EQ(data_of<int64_t>(part(1, "tenon.unique", x, 0, true, true)), (Ints{4, 1, 2, 0}));
  EXPECT_EQ(data_of<int64_t>(part(2, "tenon.unique", x, 0, true, true)), (Ints{3, 1, 2, 1, 0}));
}

TEST(Unique, ComparesSlices) {
  Tensor x = floats({3, 2}, {1, 0, 1, 0, 0, 1});
  Tensor values = part(0, "tenon.unique", x, 0, false, true);
  EXPECT_EQ(shape_of(values), (Ints{2, 2}));
  EXPECT_EQ(data_of<float>(values), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(shape_of(part(0, "tenon.unique", floats({0, 2}, {}), 0, false, true)), (Ints{0, 2}));
}

TEST(NonMaxSuppression, DropsBoxesThatOverlapABetterOne) {
  Tensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11});
  Tensor scores = floats({1, 1, 3}, {0.5f, 0.9f, 0.7f});
  Tensor none;
  Tensor y = result("tenon.non_max_suppression", boxes, scores, tensor<int64_t>(i64, {}, {3}),
                    floats({}, {0.5f}), none, false);
  EXPECT_EQ(data_of<int64_t>(y), (Ints{0, 0, 1, 0, 0, 2}));
  Tensor best = result("tenon.non_max_suppression", boxes, scores, tensor<int64_t>(i64, {}, {3}),
                       floats({}, {0.5f}), floats({}, {0.8f}), false);
  EXPECT_EQ(data_of<int64_t>(best), (Ints{0, 0, 1}));
}

TEST(NonMaxSuppression, SurvivesScoresThatChange) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the race is intended";
#endif
  constexpr int64_t n = 20000;
  const Tensor boxes = floats({1, n, 4}, Floats(4 * n)), scores = floats({1, 1, n}, Floats(n));
  std::atomic<bool> done = false;
  std::thread host([&] {
    auto* data = static_cast<volatile float*>(scores.data_as<float>());
    for (uint32_t x = 1; !done;) {
      for (int64_t i = 0; i < n; ++i) data[i] = static_cast<float>(x = x * 1664525u + 1013904223u);
    }
  });
  for (int i = 0; i < 20; ++i) {
    result("tenon.non_max_suppression", boxes, scores, ints({1}), Tensor(), Tensor(), false);
  }
  done = true;
  host.join();
}

TEST(NonMaxSuppression, SelectsNothingWithoutAMaximum) {
  Tensor none;
  Tensor y = result("tenon.non_max_suppression", floats({1, 1, 4}, {0, 0, 1, 1}),
                    floats({1, 1, 1}, {1}), none, none, none, false);
  EXPECT_EQ(shape_of(y), (Ints{0, 3}));
}

using Complexes = std::vector<std::complex<double>>;

// The sum that defines the transform.
Complexes transform_of(const Complexes& x, int64_t length, bool inverse) {
  const auto n = static_cast<size_t>(length);
  Complexes out(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < std::min(n, x.size()); ++j) {
      const double turn = static_cast<double>(j * k % n) / static_cast<double>(n);
      out[k] += x[j] * std::polar(1.0, (inverse ? 2 : -2) * M_PI * turn);
    }
    if (inverse) out[k] /= static_cast<double>(n);
  }
  return out;
}

Complexes random_signal(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  Complexes x(static_cast<size_t>(n));
  for (auto& v : x) v = {number(random), number(random)};
  return x;
}

Tensor complexes(const std::vector<int64_t>& shape, const Complexes& x) {
  std::vector<double> parts;
  for (auto v : x) parts.insert(parts.end(), {v.real(), v.imag()});
  return tensor<double>(f64, shape, parts);
}

double distance(const Tensor& y, const Complexes& want) {
  double most = 0;
  for (size_t k = 0; k < want.size(); ++k) {
    const double* at = y.data_as<double>() + 2 * k;
    most = std::max(most, std::abs(std::complex<double>(at[0], at[1]) - want[k]));
  }
  return most;
}

TEST(Dft, AgreesWithItsDefinitionForEveryLength) {
  for (int64_t n = 1; n <= 130; ++n) {
    const Complexes x = random_signal(n, static_cast<uint64_t>(n));
    for (bool inverse : {false, true}) {
      Tensor y = result("tenon.dft", complexes({n, 2}, x), n, 0, inverse, false);
      EXPECT_EQ(shape_of(y), (Ints{n, 2}));
      EXPECT_LT(distance(y, transform_of(x, n, inverse)), 1e-12) << n << (inverse ? " back" : "");
    }
  }
}

TEST(Dft, UndoesItself) {
  for (int64_t n : {4096, 15015, 100003}) {
    const Complexes x = random_signal(n, 1);
    Tensor y = result("tenon.dft", complexes({n, 2}, x), n, 0, false, false);
    EXPECT_LT(distance(result("tenon.dft", y, n, 0, true, false), x), 1e-12) << n;
  }
}

TEST(Dft, CutsAndExtendsSignals) {
  const Complexes x = random_signal(6, 1);
  for (int64_t n : {1, 4, 6, 9, 17}) {
    Tensor y = result("tenon.dft", complexes({6, 2}, x), n, 0, false, false);
    EXPECT_LT(distance(y, transform_of(x, n, false)), 1e-13) << n;
  }
}

TEST(Dft, TransformsAlongAnyAxis) {
  const Complexes x = random_signal(2 * 3 * 4, 1);
  Tensor y = result("tenon.dft", complexes({2, 3, 4, 2}, x), 3, 1, false, false);
  Complexes want(x.size());
  for (size_t o = 0; o < 2; ++o) {
    for (size_t i = 0; i < 4; ++i) {
      Complexes row;
      for (size_t k = 0; k < 3; ++k) row.push_back(x[(o * 3 + k) * 4 + i]);
      row = transform_of(row, 3, false);
      for (size_t k = 0; k < 3; ++k) want[(o * 3 + k) * 4 + i] = row[k];
    }
  }
  EXPECT_LT(distance(y, want), 1e-13);
}

TEST(Dft, OfRealNumbersIsOnesidedAndBack) {
  for (int64_t n : {1, 2, 5, 8, 17}) {
    Floats x;
    Complexes real;
    for (auto v : random_signal(n, 3)) {
      x.push_back(static_cast<float>(v.real()));
      real.emplace_back(x.back());
    }
    Tensor y = result("tenon.dft", floats({1, n, 1}, x), n, 1, false, true);
    EXPECT_EQ(shape_of(y), (Ints{1, n / 2 + 1, 2}));
    const Complexes want = transform_of(real, n, false);
    for (int64_t k = 0; k < n / 2 + 1; ++k) {
      EXPECT_NEAR(y.data_as<float>()[2 * k], want[static_cast<size_t>(k)].real(), 1e-5);
      EXPECT_NEAR(y.data_as<float>()[2 * k + 1], want[static_cast<size_t>(k)].imag(), 1e-5);
    }
    Tensor back = result("tenon.dft", y, n, 1, true, true);
    EXPECT_EQ(shape_of(back), (Ints{1, n, 1}));
    for (int64_t k = 0; k < n; ++k)
      EXPECT_NEAR(back.data_as<float>()[k], x[static_cast<size_t>(k)], 1e-6);
  }
}

TEST(Dft, OfNothingIsZero) {
  EXPECT_EQ(data_of<float>(result("tenon.dft", floats({0, 1}, {}), 2, 0, false, false)),
            (Floats{0, 0, 0, 0}));
  EXPECT_EQ(shape_of(result("tenon.dft", floats({0, 4, 1}, {}), 6, 1, false, true)),
            (Ints{0, 4, 2}));
}

TEST(Dft, RefusesOtherNumbersAndSizes) {
  const Tensor x = floats({4, 1}, {1, 2, 3, 4});
  const std::string expected = ", expected 1 or more along an axis before the last, of size 1 or 2";
  EXPECT_EQ(failure("tenon.dft", x, 0, 0, false, false),
            "tenon.dft: length 0 along axis 0 of tensor[4, 1; f32]" + expected);
  EXPECT_EQ(failure("tenon.dft", x, 4, 1, false, false),
            "tenon.dft: length 4 along axis 1 of tensor[4, 1; f32]" + expected);
  EXPECT_EQ(failure("tenon.dft", floats({1, 4}, {1, 2, 3, 4}), 4, 0, false, false),
            "tenon.dft: length 4 along axis 0 of tensor[1, 4; f32]" + expected);
  EXPECT_EQ(failure("tenon.dft", ints({1}), 1, 0, false, false),
            "tenon.dft: 'x' is i64, expected f32 or f64");
  EXPECT_NE(failure("tenon.dft", x, INT64_MAX, 0, false, false), "no error");
}

TEST(Det, IsTheVolumeOfTheRows) {
  EXPECT_EQ(data_of<float>(result("tenon.det", floats({2, 2, 2}, {1, 2, 3, 4, 0, 2, 1, 7}))),
            (Floats{-2, -2}));
  EXPECT_EQ(data_of<float>(result("tenon.det", floats({3, 3}, {2, 0, 0, 0, 0, 3, 0, 4, 0}))),
            (Floats{-24}));
  EXPECT_EQ(data_of<float>(result("tenon.det", floats({2, 2}, {1, 2, 2, 4}))), (Floats{0}));
  EXPECT_EQ(data_of<float>(result("tenon.det", floats({2, 0, 0}, {}))), (Floats{1, 1}));
  EXPECT_TRUE(std::isnan(data_of<float>(result("tenon.det", floats({2, 2}, {0, 1, NAN, 1})))[0]));
  EXPECT_TRUE(std::isnan(data_of<float>(result("tenon.det", floats({2, 2}, {NAN, 0, 0, 0})))[0]));
  EXPECT_EQ(failure("tenon.det", floats({1, 2}, {1, 2})),
            "tenon.det: 'x' is tensor[1, 2; f32], expected square matrices");
}

TEST(Arguments, AreCheckedBeforeTheyAreRead) {
  Tensor none;
  EXPECT_EQ(failure("tenon.nonzero", none), "tenon.nonzero: 'x' is absent");
  Tensor packed = Tensor::empty(std::vector<int64_t>{2}, DataType(kDLInt, 8, 4));
  EXPECT_EQ(failure("tenon.nonzero", packed), "tenon.nonzero: 'x' is i8x4, which it can't take");
  const Tensor complex = tensor<float>(c64, {1}, {1, 2});
  EXPECT_EQ(failure("tenon.topk", complex, 1, 0, true, true),
            "tenon.topk: 'x' is c64, which it can't take");
}

// Every function that takes time or memory, on enough elements for both.
std::vector<std::function<void()>> long_calls() {
  constexpr int64_t n = 20000;
  Tensor x = Tensor::empty({n}, f32), condition = Tensor::empty({n}, boolean);
  Tensor boxes = Tensor::empty({1, n, 4}, f32), scores = Tensor::empty({1, 1, n}, f32);
  for (int64_t i = 0; i < n; ++i) {
    x.data_as<float>()[i] = static_cast<float>(i * 7919 % n + 1);
    scores.data_as<float>()[i] = x.data_as<float>()[i];
    condition.data_as<uint8_t>()[i] = 1;
    for (int64_t k = 0; k < 4; ++k) {
      boxes.data_as<float>()[4 * i + k] = static_cast<float>(10 * i + 5 * (k / 2));
    }
  }
  Tensor most = tensor<int64_t>(i64, {1}, {1000});
  Tensor signal = x.reshaped(std::vector<int64_t>{n, 1});
  Tensor matrix = Tensor::empty({100, 100}, f32);
  std::copy_n(x.data_as<float>(), matrix.count(), matrix.data_as<float>());
  return {[=] { call("tenon.nonzero", x); },
          [=] { call("tenon.topk", x, int64_t{n / 2}, int64_t{0}, true, true); },
          [=] { call("tenon.compress", x, condition, int64_t{0}, false); },
          [=] { call("tenon.unique", x, int64_t{0}, false, false); },
          [=] {
            call("tenon.non_max_suppression", boxes, scores, most, Tensor(), Tensor(), int64_t{0});
          },
          [=] { call("tenon.dft", signal, int64_t{n}, int64_t{0}, false, false); },
          [=] { call("tenon.det", matrix); }};
}

TEST(Limits, StopWhatTakesLong) {
  for (const auto& run : long_calls()) {
    TestCall context;
    CallContext::Scope scope(&context);
    run();
    context.stopped = true;
    EXPECT_THROW(run(), Error);
    EXPECT_EQ(context.counted, 0u);
  }
}

TEST(Limits, CountWorkAndResults) {
  for (const auto& run : long_calls()) {
    TestCall context;
    CallContext::Scope scope(&context);
    run();
    EXPECT_EQ(context.counted, 0u);
    EXPECT_GT(context.most, 20000u);
    context.limit = context.most - 1;
    EXPECT_THROW(run(), Error);
    EXPECT_EQ(context.counted, 0u);
  }
}

TEST(Unique, SlicesWithoutElementsAreEqual) {
  Tensor x = Tensor::empty({0, 3}, f32);
  auto unique = [&](int i) { return part(i, "tenon.unique", x, int64_t{1}, false, true); };
  EXPECT_EQ(shape_of(unique(0)), Ints({0, 1}));
  EXPECT_EQ(data_of<int64_t>(unique(1)), Ints({0}));
  EXPECT_EQ(data_of<int64_t>(unique(2)), Ints({0, 0, 0}));
  EXPECT_EQ(data_of<int64_t>(unique(3)), Ints({3}));
  // The call's limit applies to a result of 64 GiB.
  TestCall context;
  context.limit = 1 << 20;
  CallContext::Scope scope(&context);
  x = Tensor::empty({0, int64_t{1} << 33}, f32);
  EXPECT_EQ(failure("tenon.unique", x, int64_t{1}, false, true), "over the limit");
}

// The known answers of Random123's test kat_vectors.
TEST(Random, IsPhilox) {
  using Words = std::vector<uint32_t>;
  auto words = [](int64_t count, int64_t seed) {
    return data_of<uint32_t>(result("tenon.random", Shape({count}), seed, true));
  };
  EXPECT_EQ(words(4, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(1, 0), (Words{0x6627e8d5}));
  EXPECT_EQ(words(4, 7), words(4, 7));
  EXPECT_NE(words(4, 7), words(4, -7));
  EXPECT_EQ(words(0, 7), Words());
  const Words many = words(4099, 7);
  EXPECT_EQ(many.size(), 4099u);
  EXPECT_EQ(std::set<uint32_t>(many.begin(), many.end()).size(), 4099u);
}

TEST(Random, WithoutASeedDiffersInEachCall) {
  auto words = [] {
    return data_of<uint32_t>(result("tenon.random", Shape({2, 3}), int64_t{0}, false));
  };
  EXPECT_EQ(words().size(), 6u);
  EXPECT_NE(words(), words());
}

TEST(Random, RefusesSizesThatNoTensorHas) {
  for (const int64_t size : {int64_t{-1}, int64_t{1} << 62}) {
    EXPECT_EQ(failure("tenon.random", Shape({size}), int64_t{0}, true),
              "a tensor's size is negative or overflows");
  }
}

}  // namespace
}  // namespace tenon::algorithms
