// Calls the functions like a compiled program does: by name, through the registry.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <thread>

#include "device/call_context.h"
#include "library/core/argument.h"
#include "library/core/register.h"
#include "object/array.h"
#include "object/registry.h"

namespace tenon::core {
namespace {

template <class T>
Tensor tensor(DataType dtype, std::vector<int64_t> shape, std::vector<T> data) {
  return Tensor::copy_of<T>(shape, dtype, data);
}
Tensor ints(std::vector<int64_t> data) {
  std::vector<int64_t> shape = {static_cast<int64_t>(data.size())};
  return tensor<int64_t>(i64, shape, data);
}
Tensor floats(std::vector<int64_t> shape, std::vector<float> data) {
  return tensor<float>(f32, shape, data);
}

template <class T>
std::vector<T> data_of(const Tensor& t) {
  return std::vector<T>(t.data_as<T>(), t.data_as<T>() + t.count());
}
std::vector<int64_t> shape_of(const Tensor& t) {
  return std::vector<int64_t>(t.shape().begin(), t.shape().end());
}
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

template <class... A>
Any call(const char* name, const A&... args) {
  register_core_library();
  return function_named(name)(args...);
}
template <class... A>
Tensor result(const char* name, const A&... args) {
  return call(name, args...).template as<Tensor>();
}
template <class... A>
Tensor part(int i, const char* name, const A&... args) {
  return call(name, args...)
      .template as<Array<Any>>()[static_cast<size_t>(i)]
      .template as<Tensor>();
}
template <class... A>
std::string failure(const char* name, const A&... args) {
  try {
    call(name, args...);
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(ElementKey, OrdersLikeTheElements) {
  std::vector<double> values = {-INFINITY, -1e30, -2.5, -1,   -0.0,     0.0,
                                1e-300,    1,     2.5,  1e30, INFINITY, NAN};
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      float a = static_cast<float>(values[i]), b = static_cast<float>(values[j]);
      bool less = std::isnan(b) ? !std::isnan(a) : a < b;
      EXPECT_EQ(element_key(f32, &a) < element_key(f32, &b), less) << a << " " << b;
      bool less64 = std::isnan(values[j]) ? !std::isnan(values[i]) : values[i] < values[j];
      EXPECT_EQ(element_key(f64, &values[i]) < element_key(f64, &values[j]), less64);
    }
  }
  for (int64_t a : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{7}, INT64_MAX}) {
    for (int64_t b : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{7}, INT64_MAX}) {
      EXPECT_EQ(element_key(i64, &a) < element_key(i64, &b), a < b);
      int8_t c = static_cast<int8_t>(a), d = static_cast<int8_t>(b);
      EXPECT_EQ(element_key(i8, &c) < element_key(i8, &d), c < d);
    }
  }
}

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

TEST(Append, PutsARowBehindTheLast) {
  Tensor x = floats({1, 2}, {1, 2});
  Tensor y = result("tenon.append", x, floats({2}, {3, 4}));
  EXPECT_EQ(shape_of(y), (Ints{2, 2}));
  EXPECT_EQ(data_of<float>(y), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(data_of<float>(x), (Floats{1, 2}));
  EXPECT_EQ(data_of<int64_t>(result("tenon.append", ints({}), tensor<int64_t>(i64, {}, {7}))),
            (Ints{7}));
  EXPECT_EQ(shape_of(result("tenon.append", floats({3, 0}, {}), floats({0}, {}))), (Ints{4, 0}));
}

TEST(Append, RefusesWhatIsNoRow) {
  Tensor x = floats({1, 2}, {1, 2});
  const std::string none = "tenon.append: the row does not match x";
  EXPECT_EQ(failure("tenon.append", x, floats({3}, {1, 2, 3})), none);
  EXPECT_EQ(failure("tenon.append", x, floats({1, 2}, {1, 2})), none);
  EXPECT_EQ(failure("tenon.append", x, ints({1, 2})), none);
  EXPECT_EQ(failure("tenon.append", floats({}, {1}), floats({}, {1})), none);
  EXPECT_EQ(failure("tenon.append", x, 1), "argument 1 of tenon.append has the wrong type");
  EXPECT_EQ(failure("tenon.append", x), "tenon.append takes 2 arguments, not 1");
  EXPECT_EQ(failure("tenon.append", floats({INT64_MAX, 0}, {}), floats({0}, {})),
            "tenon.append: x has no room for a row");
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

TEST(ReshapeSizes, ResolvesZeroAndMinusOne) {
  EXPECT_EQ(data_of<int64_t>(result("tenon.shape.reshape", ints({0, -1}), ints({2, 3, 4}), false)),
            (Ints{2, 12}));
  EXPECT_EQ(data_of<int64_t>(result("tenon.shape.reshape", ints({0, 5}), ints({5, 0}), true)),
            (Ints{0, 5}));
}

TEST(ReshapeSizes, RefusesWhatDoesNotFit) {
  EXPECT_EQ(failure("tenon.shape.reshape", ints({4, -1}), ints({2, 3}), false),
            "tenon.shape.reshape: the -1 of [4, -1] has no size for x of [2, 3]");
  EXPECT_EQ(failure("tenon.shape.reshape", ints({-1, -1}), ints({2, 3}), false),
            "tenon.shape.reshape: [-1, -1] holds -1 twice");
  EXPECT_EQ(failure("tenon.shape.reshape", ints({7}), ints({2, 3}), false),
            "tenon.shape.reshape: x of [2, 3] can't have the sizes [7]");
  EXPECT_EQ(failure("tenon.shape.reshape", ints({-1}), ints({INT64_MAX, 3}), false),
            "tenon.shape.reshape: the sizes [9223372036854775807, 3] have too many elements");
}

// start, end and step over n elements, as in Python slices.
std::pair<Ints, Ints> bounds(int64_t start, int64_t end, int64_t step, int64_t n = 10) {
  Tensor none;
  auto both = call("tenon.shape.slice", ints({n}), ints({start}), ints({end}), none, ints({step}))
                  .as<Array<Any>>();
  return {data_of<int64_t>(both[0].as<Tensor>()), data_of<int64_t>(both[1].as<Tensor>())};
}

TEST(SliceBounds, AreThoseOfPythonSlices) {
  EXPECT_EQ(bounds(2, 8, 2), (std::pair(Ints{2}, Ints{3})));
  EXPECT_EQ(bounds(-3, INT64_MAX, 1), (std::pair(Ints{7}, Ints{3})));
  EXPECT_EQ(bounds(100, 200, 1), (std::pair(Ints{0}, Ints{0})));
  EXPECT_EQ(bounds(-1, INT64_MIN, -1), (std::pair(Ints{9}, Ints{10})));
  EXPECT_EQ(bounds(100, 0, -3), (std::pair(Ints{9}, Ints{3})));
  EXPECT_EQ(bounds(0, 10, INT64_MAX), (std::pair(Ints{0}, Ints{1})));
  EXPECT_EQ(bounds(9, INT64_MIN, INT64_MIN), (std::pair(Ints{9}, Ints{1})));
  EXPECT_EQ(bounds(0, 5, 1, 0), (std::pair(Ints{0}, Ints{0})));
}

TEST(SliceBounds, LeavesOtherAxesWhole) {
  Tensor none;
  auto both = call("tenon.shape.slice", ints({4, 6}), ints({1}), ints({3}), ints({-1}), none)
                  .as<Array<Any>>();
  EXPECT_EQ(data_of<int64_t>(both[0].as<Tensor>()), (Ints{0, 1}));
  EXPECT_EQ(data_of<int64_t>(both[1].as<Tensor>()), (Ints{4, 2}));
  EXPECT_EQ(data_of<int64_t>(both[2].as<Tensor>()), (Ints{1, 1}));
  EXPECT_EQ(data_of<int64_t>(part(2, "tenon.shape.slice", ints({4, 6}), ints({5}), ints({0}),
                                  ints({1}), ints({-2}))),
            (Ints{1, -2}));
  EXPECT_EQ(failure("tenon.shape.slice", ints({4}), ints({1}), ints({3}), ints({1}), none),
            "tenon.shape.slice: axis 1 of a tensor of rank 1");
}

TEST(RangeCount, RoundsUpAndIsNeverNegative) {
  auto count = [](double start, double limit, double delta) {
    auto f = [](double v) { return floats({}, {static_cast<float>(v)}); };
    return *result("tenon.shape.range_count", f(start), f(limit), f(delta)).data_as<int64_t>();
  };
  EXPECT_EQ(count(1, 5, 2), 2);
  EXPECT_EQ(count(1, 6, 2), 3);
  EXPECT_EQ(count(10, 4, -2), 3);
  EXPECT_EQ(count(5, 1, 2), 0);
  Tensor low = tensor<int64_t>(i64, {}, {INT64_MIN}), high = tensor<int64_t>(i64, {}, {INT64_MAX});
  EXPECT_EQ(failure("tenon.shape.range_count", low, high, tensor<int64_t>(i64, {}, {1})),
            "tenon.shape.range_count: the range has more than 2^63 elements");
  EXPECT_EQ(failure("tenon.shape.range_count", low, high, tensor<int64_t>(i64, {}, {0})),
            "tenon.shape.range_count: 'delta' is 0");
}

TEST(Arguments, AreCheckedBeforeTheyAreRead) {
  Tensor none;
  EXPECT_EQ(failure("tenon.nonzero", none), "tenon.nonzero: 'x' is absent");
  EXPECT_EQ(
      failure("tenon.shape.reshape", floats({1}, {1}), ints({1}), false),
      "tenon.shape.reshape: 'shape' is tensor[1; f32], expected tensor[n; i64], n at most 32");
  Tensor packed = Tensor::empty(std::vector<int64_t>{2}, DataType(kDLInt, 8, 4));
  EXPECT_EQ(failure("tenon.nonzero", packed), "tenon.nonzero: 'x' is i8x4, which it can't take");
}

// A call with limits that the test sets.
struct TestCall : CallContext {
  bool stopped = false;
  size_t limit = ~size_t{0}, counted = 0, most = 0;

  void poll() override {
    if (stopped) throw Error(ErrorKind::Runtime, "stopped");
  }
  bool count_memory(size_t bytes) override {
    if (bytes > limit - counted) return false;
    counted += bytes;
    most = std::max(most, counted);
    return true;
  }
  void discount_memory(size_t bytes) override { counted -= bytes; }
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
  bool may_write(const Tensor&) const override { return true; }
  Ref<StorageObj> allocate(size_t bytes, size_t) override {
    if (!count_memory(bytes)) fail_memory(bytes);
    auto s = make<StorageObj>();
    s->data = std::malloc(bytes ? bytes : 1);
    s->size = bytes;
    s->context = this;
    s->free = [](StorageObj* made) {
      std::free(made->data);
      static_cast<TestCall*>(made->context)->discount_memory(made->size);
    };
    return s;
  }
};

// A call whose program passes its last reference to `x`.
struct GivesAway : TestCall {
  Tensor x;
  bool poison = false;

  bool poisons() const override { return poison; }
  Any take(const Object*, const AnyView*, int32_t) override {
    Any given(x);
    x = Tensor();
    return given;
  }
};

TEST(Append, GrowsInPlaceOrPoisonsWhatItWouldHaveTaken) {
  for (bool poison : {false, true}) {
    uint8_t memory[64] = {7};
    auto storage = make<StorageObj>();
    storage->data = memory;
    storage->size = sizeof memory;
    GivesAway context;
    CallContext::Scope scope(&context);
    context.poison = poison;
    context.x = Tensor::over(std::move(storage), 0, u8, std::vector<int64_t>{1});
    register_core_library();
    const Function append = function_named("tenon.append");
    const Tensor row = tensor<uint8_t>(u8, {}, {8});
    const AnyView args[] = {AnyView(context.x), AnyView(row)};  // only the context references x
    Any result;
    ASSERT_EQ(append.call(args, 2, &result), 0);
    const Tensor y = result.as<Tensor>();
    EXPECT_EQ(data_of<uint8_t>(y), (std::vector<uint8_t>{7, 8}));
    EXPECT_EQ(y.data() == memory, !poison);
    EXPECT_EQ(memory[0], poison ? 0xff : 7);
  }
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
  return {[=] { call("tenon.nonzero", x); },
          [=] { call("tenon.topk", x, int64_t{n / 2}, int64_t{0}, true, true); },
          [=] { call("tenon.compress", x, condition, int64_t{0}, false); },
          [=] { call("tenon.unique", x, int64_t{0}, false, false); },
          [=] {
            call("tenon.non_max_suppression", boxes, scores, most, Tensor(), Tensor(), int64_t{0});
          }};
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

}  // namespace
}  // namespace tenon::core
