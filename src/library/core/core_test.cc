// Calls the functions like a compiled program does: by name, through the registry.
#include <gtest/gtest.h>

#include "library/argument/call_testing.h"
#include "library/core/register.h"

namespace tenon::core {
namespace {

using namespace testing_calls;

// Registers the functions before any test calls one.
const bool registered = (register_core_library(), true);

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

TEST(Arguments, AreCheckedBeforeTheyAreRead) {
  EXPECT_EQ(
      failure("tenon.shape.reshape", floats({1}, {1}), ints({1}), false),
      "tenon.shape.reshape: 'shape' is tensor[1; f32], expected tensor[n; i64], n at most 32");
}

}  // namespace
}  // namespace tenon::core
