#include "loop/affine.h"

#include <gtest/gtest.h>

#include "loop/tensors_testing.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), h = Dim::symbol("h");
const Ref<const Var> i = var("i", i64), j = var("j", i64), c = var("c", i64);

ExprRef div(const ExprRef& a, const Dim& b) {
  return binary(BinaryOp::kFloorDiv, a, dim_value(b));
}
ExprRef rem(const ExprRef& a, const Dim& b) {
  return binary(BinaryOp::kMod, a, dim_value(b));
}
ExprRef times(const ExprRef& a, const Dim& b) {
  return binary(BinaryOp::kMul, a, dim_value(b));
}

TEST(Affine, Coefficients) {
  ExprRef e = times(i, n * h) + times(j - ExprRef(i), n) + ExprRef(c);
  EXPECT_EQ(coefficient(e, i), n * h - n);
  EXPECT_EQ(coefficient(e, j), n);
  EXPECT_EQ(coefficient(div(i, Dim(2)), i), std::nullopt);
  EXPECT_EQ(coefficient(div(i, Dim(2)), j), Dim(0));
  auto x = buffer("x", i64, {n});
  EXPECT_EQ(coefficient(at(x, {i}), i), std::nullopt);
  EXPECT_EQ(coefficient(at(x, {i}), i, true), Dim(0));
}

TEST(Affine, OffsetsAreSumsInTheOrderOfTheVariables) {
  auto x = buffer("x", f32, {n, h, Dim(4)});
  ExprRef e = flatten_loads(at(x, {j, i, index(1)}), {i, j});
  EXPECT_EQ(to_text(e), "x[((i * 4) + 1) + (j * 4*h)]");
}

TEST(Affine, ReshapesComeApart) {
  std::vector<VarRange> ranges{{i, n}, {j, h}, {c, Dim(12)}};
  auto text = [&](const ExprRef& e) { return to_text(simplify_indices(e, ranges)); };
  ExprRef flat = times(i, h * Dim(12)) + times(j, Dim(12)) + ExprRef(c);
  EXPECT_EQ(text(div(flat, h * Dim(12))), "i");
  EXPECT_EQ(text(rem(div(flat, Dim(12)), h)), "j");
  EXPECT_EQ(text(rem(flat, Dim(12))), "c");
  EXPECT_EQ(text(rem(flat, h * Dim(12))), "(j * 12) + c");
  EXPECT_EQ(text(rem(div(flat, Dim(3)), Dim(4))), "floordiv(c, 3)");
  EXPECT_EQ(text(div(times(c, h) + ExprRef(j), h * Dim(4))), "floordiv(c, 4)");
}

TEST(Affine, WhatMayWrapIsNotExact) {
  const Dim limit(INT64_MAX);
  EXPECT_TRUE(is_exact(times(i, Dim(1000)) + index(-7)));
  EXPECT_TRUE(is_exact(rem(i, Dim(-4)) - dim_value(n * h)));
  EXPECT_FALSE(is_exact(dim_value(limit)));
  EXPECT_FALSE(is_exact(times(i, n)));  // of two sizes, which a program may choose
  EXPECT_FALSE(is_exact(rem(times(i, Dim(int64_t{1} << 62)), Dim(5))));
  EXPECT_FALSE(is_exact(at(buffer("x", i64, {n}), {i})));
}

TEST(Affine, WhatMayWrapIsClosedWhereItIsStored) {
  const ExprRef small = times(i, Dim(3)), large = times(i, Dim(int64_t{1} << 62));
  EXPECT_EQ(as_stored(small), small);
  EXPECT_EQ(to_text(as_stored(large)), "rounded(i * 4611686018427387904)");
  EXPECT_EQ(coefficient(as_stored(large), i), std::nullopt);
  const ExprRef e = rem(as_stored(large), Dim(5));
  EXPECT_EQ(simplify_indices(e, {{i, Dim(8)}}), e);
}

TEST(Affine, DivisorsArePositive) {
  EXPECT_EQ(as_divisor(index(3)), Dim(3));
  EXPECT_EQ(as_divisor(dim_value(n)), n);
  EXPECT_EQ(as_divisor(index(0)), std::nullopt);
  EXPECT_EQ(as_divisor(index(-3)), std::nullopt);
  EXPECT_EQ(as_divisor(dim_value(n - Dim(1))), std::nullopt);
}

TEST(Affine, SimplifiedIndicesKeepTheirValue) {
  std::mt19937 rng(5);
  auto pick = [&](int below) { return static_cast<int64_t>(rng() % static_cast<unsigned>(below)); };
  constexpr int64_t kLarge[] = {INT64_MIN, INT64_MAX, int64_t{1} << 62, -(int64_t{1} << 40)};
  for (int round = 0; round < 2000; ++round) {
    std::vector<VarRange> ranges{
        {i, Dim(1 + pick(6))}, {j, Dim(1 + pick(6))}, {c, Dim(1 + pick(6))}};
    ExprRef e = index(pick(4));
    for (const VarRange& r : ranges) e = e + times(r.var, Dim(pick(13)));
    for (int64_t k = 1 + pick(3); k > 0; --k) {
      const int64_t size = 1 + pick(12);
      const Dim by(pick(6) == 0 ? -size : pick(12) == 0 ? kLarge[pick(4)] : size);
      if (pick(12) == 0) e = times(e, Dim(kLarge[pick(4)]));
      if (pick(12) == 0) e = e + index(kLarge[pick(4)]);
      e = pick(2) ? div(e, by) : rem(e, by);
      if (pick(3) == 0) e = e + times(j, Dim(pick(5)));
    }
    ExprRef s = simplify_indices(e, ranges);
    // One kernel writes both for every point.
    auto before = buffer("before", i64, {ranges[0].extent, ranges[1].extent, ranges[2].extent});
    auto after = buffer("after", i64, before->shape.to_vector());
    auto stage = [&](const Ref<const Buffer>& out, const ExprRef& body) {
      auto st = make<Stage>();
      st->out = out;
      st->axes = {i, j, c};
      st->body = body;
      return Ref<const Stage>(st);
    };
    auto results =
        evaluate(*compute_of({}, {stage(before, e), stage(after, s)}, {before, after}), {});
    expect_close(results[1], results[0]);
    if (HasFatalFailure()) FAIL() << to_text(e) << " became " << to_text(s);
  }
}

}  // namespace
}  // namespace tenon::loop
