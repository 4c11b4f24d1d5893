#include "loop/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "loop/compute.h"
#include "loop/scalar.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n");
ExprRef add(ExprRef a, ExprRef b) {
  return binary(BinaryOp::kAdd, a, b);
}

TEST(Expr, LiteralsFold) {
  EXPECT_EQ(as_int(add(index(2), index(3))), 5);
  EXPECT_EQ(as_int(binary(BinaryOp::kShl, literal_int(i8, 1), literal_int(i8, 8))), 0);
  EXPECT_EQ(as_int(add(literal_int(u8, 255), literal_int(u8, 1))), 0);
  EXPECT_EQ(as_int(cast(i32, literal(f32, NAN))), 0);
  EXPECT_EQ(as_int(cast(i32, literal(f32, 1e20))), INT32_MAX);
  EXPECT_EQ(as_int(cast(u8, literal(f32, -3))), 0);
}

TEST(Expr, DivisionByAZeroLiteralIsLeftToFailWhenItRuns) {
  EXPECT_EQ(binary(BinaryOp::kDiv, index(1), index(0))->kind, ExprKind::kBinary);
}

TEST(Expr, SizesFoldToSizes) {
  EXPECT_EQ(as_dim(add(dim_value(n), index(1))), n + Dim(1));
  EXPECT_EQ(as_int(binary(BinaryOp::kLt, dim_value(n), dim_value(n + Dim(1)))), 1);
  EXPECT_EQ(as_int(binary(BinaryOp::kEq, dim_value(n), dim_value(n))), 1);
}

TEST(Expr, IndexConstantsMeet) {
  ExprRef i = var("i", i64);
  EXPECT_EQ(to_text(add(add(index(1), i), index(2))), "i + 3");
  EXPECT_EQ(add(add(i, index(1)), index(-1)), i);
  EXPECT_EQ(as_int(binary(BinaryOp::kMul, i, index(0))), 0);
}

TEST(Expr, FloatIdentitiesRespectNanAndSignedZero) {
  ExprRef x = var("x", f32);
  EXPECT_EQ(binary(BinaryOp::kMul, x, literal(f32, 1)), x);
  EXPECT_NE(add(x, literal(f32, 0)), x);
  EXPECT_NE(binary(BinaryOp::kMul, x, literal(f32, 0))->kind, ExprKind::kLiteral);
  EXPECT_EQ(binary(BinaryOp::kSub, x, literal(f32, 0)), x);
  EXPECT_NE(binary(BinaryOp::kSub, x, literal(f32, -0.0)), x);
}

TEST(Expr, NoIndexIsKnownToLieInLessThanNothing) {
  EXPECT_EQ(checked_index(index(-5), Dim(INT64_MIN))->kind, ExprKind::kCheckedIndex);
  EXPECT_EQ(checked_index(index(-1), Dim(-1))->kind, ExprKind::kCheckedIndex);
}

TEST(Expr, KnownIndicesNeedNoCheck) {
  EXPECT_EQ(as_int(checked_index(index(-1), Dim(4))), 3);
  EXPECT_EQ(as_int(checked_index(index(0), n + Dim(1))), 0);
  EXPECT_EQ(checked_index(index(4), Dim(4))->kind, ExprKind::kCheckedIndex);
  EXPECT_EQ(checked_index(index(0), n)->kind, ExprKind::kCheckedIndex);
}

TEST(Expr, OperandsOfDifferentTypesAreOurBug) {
  EXPECT_THROW(add(index(1), literal_int(i32, 1)), Error);
  EXPECT_THROW(unary(UnaryOp::kExp, index(1)), Error);
}

TEST(Expr, DeepSharedExpressionsAreWalkedOnce) {
  ExprRef x = var("x", f32);
  ExprRef e = x;
  for (int i = 0; i < 100000; ++i) e = add(e, e);  // 2^100000 as a tree
  int visited = 0;
  post_order(e, [&](const ExprRef&) { ++visited; });
  EXPECT_EQ(visited, 100001);
  ExprRef y = var("y", f32);
  EXPECT_TRUE(depends_on(substitute(e, {{static_cast<const Var*>(x.get()), y}}),
                         Ref<const Var>(static_cast<const Var*>(y.get()))));
  EXPECT_FALSE(to_text(e).empty());
}

TEST(Scalar, Float16RoundsToNearestEven) {
  EXPECT_EQ(round_to(f16, 2049), 2048);
  EXPECT_EQ(round_to(f16, 2051), 2052);
  EXPECT_EQ(round_to(f16, 65519), 65504);
  EXPECT_EQ(round_to(f16, 65520), INFINITY);
  EXPECT_EQ(round_to(f16, 0x1p-25), 0);
  EXPECT_EQ(round_to(f16, 0x1.8p-25), 0x1p-24);
  for (int h = 0; h < 0x7c00; ++h) {
    uint16_t in = static_cast<uint16_t>(h), out;
    scalar_store(f16, &out, scalar_load(f16, &in));
    ASSERT_EQ(in, out);
  }
}

TEST(Scalar, IntegerSemantics) {
  auto op = [](BinaryOp o, DataType t, int64_t a, int64_t b) { return scalar_binary(o, t, a, b); };
  EXPECT_EQ(op(BinaryOp::kFloorDiv, i64, -7, 2), -4);
  EXPECT_EQ(op(BinaryOp::kDiv, i64, -7, 2), -3);
  EXPECT_EQ(op(BinaryOp::kMod, i64, -7, 2), 1);
  EXPECT_EQ(op(BinaryOp::kRem, i64, -7, 2), -1);
  EXPECT_EQ(op(BinaryOp::kDiv, i32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(op(BinaryOp::kDiv, i32, 1, 0), std::nullopt);
  EXPECT_EQ(op(BinaryOp::kShr, i8, -8, 1), -4);
  EXPECT_EQ(op(BinaryOp::kShr, i8, -8, 8), 0);
  EXPECT_EQ(op(BinaryOp::kLt, u64, -1, 1), 0);
  EXPECT_EQ(scalar_unary(UnaryOp::kAbs, i8, -128), -128);
  EXPECT_EQ(scalar_cast(i8, i64, 200), -56);
}

TEST(Scalar, ExtremesPropagateNan) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (BinaryOp o : {BinaryOp::kMin, BinaryOp::kMax}) {
    EXPECT_TRUE(std::isnan(as_float(*scalar_binary(o, f32, float_bits(nan), float_bits(1)))));
    EXPECT_TRUE(std::isnan(as_float(*scalar_binary(o, f32, float_bits(1), float_bits(nan)))));
  }
}

}  // namespace
}  // namespace tenon::loop
