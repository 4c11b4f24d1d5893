// Facts about expressions, and which vector loops can run their lanes together.
#include "codegen/llvm/facts.h"

#include <gtest/gtest.h>

#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

const Ref<const Buffer> x = buffer("x", i64, {Dim::symbol("n")}),
                        y = buffer("y", i64, {Dim::symbol("n")}), one = buffer("s", i64, {Dim(1)});

KernelRef kernel_of(const StmtRef& body, bool in_bounds = true) {
  auto k = make<Kernel>(*kernel("facts", {x}, {y}, body));
  k->in_bounds = in_bounds;
  return k;
}

KernelRef empty_kernel(bool in_bounds = true) {
  return kernel_of(both({}), in_bounds);
}

const For& loop_of(const StmtRef& s) {
  return static_cast<const For&>(*s);
}

TEST(Facts, IndexArithmeticIsNonnegativeInBounds) {
  auto i = var("i", i64);
  const StmtRef loop = nest(i, index(2), index(9), ForKind::kSerial, put(y, {i}, i));
  const ExprRef sum = i + index(1), product = i * index(3), difference = i - index(1),
                remainder = binary(BinaryOp::kMod, difference, index(4)),
                counted = checked_index(load(x, {i}), Dim(5));
  for (bool in_bounds : {true, false}) {
    const KernelRef k = kernel_of(loop, in_bounds);
    Facts facts(*k);
    facts.define(loop_of(loop));
    EXPECT_EQ(facts.nonnegative(*i), in_bounds);
    EXPECT_EQ(facts.nonnegative(*sum), in_bounds);
    EXPECT_EQ(facts.nonnegative(*product), in_bounds);
    EXPECT_FALSE(facts.nonnegative(*difference));
    EXPECT_TRUE(facts.nonnegative(*remainder));
    EXPECT_TRUE(facts.nonnegative(*counted));
  }
}

// A walk along every path to the shared parts would take 2^100 steps.
TEST(Facts, OfSizesThatShareTheirParts) {
  const KernelRef k = empty_kernel();
  Facts facts(*k);
  ExprRef size = binary(BinaryOp::kDiv, dim_value(Dim::symbol("n")), index(2));
  for (int level = 0; level < 100; ++level) size = size * (size + index(1));
  EXPECT_TRUE(facts.nonnegative(*size));
}

TEST(Facts, AVariableThatIsBoundAgainIsKnownByItsLastValue) {
  const KernelRef k = empty_kernel();
  Facts facts(*k);
  auto v = var("v", i64);
  const ExprRef sum = v + index(1);
  const StmtRef first = let(v, index(3), put(y, {v}, sum)),
                second = let(v, load(x, {index(0)}), put(y, {v}, sum));
  facts.define(static_cast<const Let&>(*first));
  EXPECT_TRUE(facts.nonnegative(*sum));
  facts.define(static_cast<const Let&>(*second));
  EXPECT_FALSE(facts.nonnegative(*sum));
}

TEST(Facts, StridesBetweenLanes) {
  const KernelRef k = empty_kernel();
  Facts facts(*k);
  auto i = var("i", i64), v = var("v", i64);
  const ExprRef tripled = index(2) + i * index(3), within = binary(BinaryOp::kMod, i, index(16)),
                square = i * i;
  const StmtRef named = let(v, tripled, put(y, {v}, v));
  EXPECT_FALSE(facts.varies(*i)) << "outside vector loops";
  facts.define(static_cast<const Let&>(*named));
  for (int64_t multiple : {8, 1}) {
    facts.enter({i.get(), 8, {multiple, 0}});
    EXPECT_EQ(facts.lane_stride(*index(7)), 0);
    EXPECT_EQ(facts.lane_stride(*i), 1);
    EXPECT_EQ(facts.lane_stride(*tripled), 3);
    EXPECT_EQ(facts.lane_stride(*v), 3);
    EXPECT_EQ(facts.lane_stride(*square), std::nullopt);
    // Lanes 0 to 7 are within one period of 16 only if lane 0 is at a multiple of 8.
    EXPECT_EQ(facts.lane_stride(*within), multiple == 8 ? std::optional<int64_t>(1) : std::nullopt);
    facts.leave();
  }
}

TEST(Facts, OffsetsOfLanesWithinPeriods) {
  auto i = var("i", i64);
  const auto found = [&](const ExprRef& e, const Congruence& begin, bool in_bounds) {
    auto kernel = make<Kernel>(*empty_kernel());
    kernel->in_bounds = in_bounds;
    Facts facts(*kernel);
    facts.enter({i.get(), 4, begin});
    const LaneOffsets* const offsets = facts.lane_offsets(*e);
    return offsets ? std::optional(*offsets) : std::nullopt;
  };
  using Offsets = std::optional<LaneOffsets>;
  const auto quotient = [](const ExprRef& e, int64_t by) {
    return binary(BinaryOp::kFloorDiv, e, index(by));
  };
  const auto remainder = [](const ExprRef& e, int64_t by) {
    return binary(BinaryOp::kMod, e, index(by));
  };
  EXPECT_EQ(found(quotient(i, 2), {4, 0}, true), Offsets({0, 0, 1, 1}));
  EXPECT_EQ(found(quotient(i, 2), {4, 1}, true), Offsets({0, 1, 1, 2}));
  EXPECT_EQ(found(quotient(i - index(1), 2), {4, 0}, true), Offsets({0, 1, 1, 2}));
  EXPECT_EQ(found(quotient(i, 2), {5, 0}, true), std::nullopt) << "even or odd";
  EXPECT_EQ(found(quotient(i * index(2), 3), {12, 8}, true), Offsets({0, 1, 1, 2}));
  EXPECT_EQ(found(remainder(i, 3), {3, 2}, true), Offsets({0, -2, -1, 0}));
  EXPECT_EQ(found(remainder(quotient(i, 2), 2), {4, 2}, true), Offsets({0, 0, -1, -1}));
  EXPECT_EQ(found(quotient(remainder(i, 6), 2), {6, 3}, true), Offsets({0, 1, 1, -1}));
  EXPECT_EQ(found(remainder(quotient(remainder(i, 12), 4), 2), {12, 4}, true),
            Offsets({0, 0, 0, 0}));
  EXPECT_EQ(found(quotient(i, 8), {4, 0}, true), Offsets({0, 0, 0, 0}));
  EXPECT_EQ(found(quotient(i, 8), {2, 0}, true), std::nullopt) << "may begin with 6";
  EXPECT_EQ(found(quotient(index(3) - i, 2), {0, 6}, true), Offsets({0, 0, -1, -1}));
  // Integers that may wrap are certain only within a power of two.
  EXPECT_EQ(found(quotient(i, 2), {4, 0}, false), std::nullopt);
  EXPECT_EQ(found(quotient(i, 8), {4, 0}, false), Offsets({0, 0, 0, 0}));
  EXPECT_EQ(found(quotient(i + index(3), 12), {12, 0}, false), std::nullopt);
}

TEST(Facts, ScratchHasAValuePerLaneOfItsVectorLoop) {
  auto i = var("i", i64), j = var("j", i64);
  const StmtRef use = scratch(one, put(one, {index(0)}, index(1)));
  auto lanes = [&](int64_t width) {
    const KernelRef k = kernel_of(both({use, nest(i, index(0), index(width), ForKind::kVector, use),
                                        nest(j, index(0), index(2), ForKind::kSerial, use)}));
    return Facts(*k).lanes_of(*one);
  };
  EXPECT_EQ(lanes(8), 8u);
  EXPECT_EQ(lanes(6), 1u) << "such a loop has no vectors";
  EXPECT_EQ(Facts(*empty_kernel()).lanes_of(*y), 1u);
}

TEST(Facts, LanesRunTogetherUnlessTheyMeetOrDiffer) {
  auto i = var("i", i64), j = var("j", i64);
  auto possible = [&](const StmtRef& body) {
    const StmtRef loop = nest(i, index(0), index(8), ForKind::kVector, body);
    const KernelRef k = kernel_of(loop);
    Facts facts(*k);
    facts.define(loop_of(loop));
    facts.enter({i.get(), 8, 8});
    return facts.can_vectorise(*body);
  };
  const ExprRef private_value = load(one, {index(0)});
  EXPECT_TRUE(possible(put(y, {i}, i)));
  EXPECT_TRUE(possible(put(y, {index(0)}, index(1))));
  EXPECT_FALSE(possible(put(y, {index(0)}, i)));
  EXPECT_FALSE(possible(when(less(i, index(3)), put(y, {index(0)}, index(1)))));
  EXPECT_TRUE(possible(scratch(one, put(one, {index(0)}, i))));
  EXPECT_FALSE(possible(scratch(one, put(one, {i}, i))));
  EXPECT_FALSE(possible(scratch(one, put(y, {index(0)}, private_value))));
  EXPECT_FALSE(
      possible(scratch(one, when(less(private_value, index(3)), put(y, {index(0)}, index(1))))));
  EXPECT_FALSE(possible(nest(j, i, index(2), ForKind::kUnrolled, put(y, {j}, index(1)))));
  EXPECT_FALSE(possible(
      scratch(one, nest(j, private_value, index(2), ForKind::kUnrolled, put(y, {j}, index(1))))));
}

}  // namespace
}  // namespace tenon::codegen
