#include "loop/excess_precision.h"

#include <gtest/gtest.h>

#include "loop/inline_stages.h"
#include "loop/tensors_testing.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
const Ref<const Buffer> x = buffer("x", f16, {n, m});

ExprRef half(double v) {
  return literal(f16, v);
}

std::string text(const ComputeRef& c) {
  return to_text(*inline_stages(with_excess_precision(c)));
}

TEST(ExcessPrecision, AChainOfOperationsRoundsOnce) {
  auto a = buffer("a", f16, {n, m}), y = buffer("y", f16, {n, m});
  auto c = compute_of({x},
                      {map_stage(a, [&](const Indices& i) { return at(x, i) * half(3); }),
                       map_stage(y, [&](const Indices& i) { return at(a, i) + at(x, i); })},
                      {y});
  EXPECT_EQ(text(c),
            "compute(x: tensor[n, m; f16]) -> y:\n"
            "  y[i0 < n, i1 < m]: f16 = f16((f32(x[i0, i1]) * 3.0) + f32(x[i0, i1]))\n");
}

TEST(ExcessPrecision, SumsInTheKernelAreNotRounded) {
  auto sum = buffer("sum", f16, {n}), y = buffer("y", f16, {n, m});
  auto c = compute_of({x},
                      {reduce_stage(sum, Reduction::kSum, {m},
                                    [&](const Indices& i, const Indices& k) {
                                      return at(x, {i[0], k[0]}) * at(x, {i[0], k[0]});
                                    }),
                       map_stage(y, [&](const Indices& i) { return at(x, i) / at(sum, {i[0]}); })},
                      {y});
  EXPECT_EQ(text(c),
            "compute(x: tensor[n, m; f16]) -> y:\n"
            "  sum[i0 < n]: f32 = sum over k0 < m of f32(x[i0, k0]) * f32(x[i0, k0])\n"
            "  y[i0_1 < n, i1 < m]: f16 = f16(f32(x[i0_1, i1]) / sum[i0_1])\n");
}

TEST(ExcessPrecision, OutputsComparisonsAndIntegersAreRounded) {
  auto a = buffer("a", f16, {n}), b = buffer("b", boolean, {n}), i8s = buffer("i", i8, {n});
  const Ref<const Buffer> v = buffer("v", f16, {n});
  auto c = compute_of(
      {v},
      {map_stage(a, [&](const Indices& i) { return at(v, i) * half(3); }),
       map_stage(b, [&](const Indices& i) { return binary(BinaryOp::kLt, at(a, i), half(1)); }),
       map_stage(i8s, [&](const Indices& i) { return cast(i8, at(v, i) + half(1)); })},
      {a, b, i8s});
  EXPECT_EQ(text(c),
            "compute(v: tensor[n; f16]) -> a, b, i:\n"
            "  a[i0 < n]: f16 = f16(f32(v[i0]) * 3.0)\n"
            "  b[i0_1 < n]: bool = a[i0_1] < 1:f16\n"
            "  i[i0_2 < n]: i8 = i8(f16(f32(v[i0_2]) + 1.0))\n");
}

// Of conversions, one to a narrow float and back is kept, also where a move lies between.
TEST(ExcessPrecision, OnlyRoundingThatTheProgramAsksForIsKept) {
  const Ref<const Buffer> v = buffer("v", f32, {n, m});
  auto a = buffer("a", f16, {n, m}), b = buffer("b", f16, {m, n}), y = buffer("y", f32, {m, n});
  auto convert = map_stage(a, [&](const Indices& i) { return cast(f16, at(v, i)); });
  auto back = compute_of({v},
                         {convert,
                          map_stage(b,
                                    [&](const Indices& i) {
                                      return at(a, {i[1], i[0]});
                                    }),
                          map_stage(y, [&](const Indices& i) { return cast(f32, at(b, i)); })},
                         {y});
  EXPECT_EQ(text(back),
            "compute(v: tensor[n, m; f32]) -> y:\n"
            "  y[i0 < m, i1 < n]: f32 = f32(f16(v[i1, i0]))\n");
  auto z = buffer("z", f16, {n, m});
  auto added = compute_of(
      {v}, {convert, map_stage(z, [&](const Indices& i) { return at(a, i) + half(1); })}, {z});
  EXPECT_EQ(text(added),
            "compute(v: tensor[n, m; f32]) -> z:\n"
            "  z[i0 < n, i1 < m]: f16 = f16(v[i0, i1] + 1.0)\n");
}

TEST(ExcessPrecision, ElementsOfRankZeroAreRounded) {
  const Ref<const Buffer> v = buffer("v", f16, {});
  auto a = buffer("a", f16, {}), y = buffer("y", f16, {n});
  auto c = compute_of({v},
                      {map_stage(a, [&](const Indices& i) { return at(v, i) * half(3); }),
                       map_stage(y, [&](const Indices&) { return at(a, {}) + half(1); })},
                      {y});
  EXPECT_EQ(text(c),
            "compute(v: tensor[f16]) -> y:\n"
            "  y[i0 < n]: f16 = f16(f32(f16(f32(v[]) * 3.0)) + 1.0)\n");
}

TEST(ExcessPrecision, OtherTypesAreLeftAlone) {
  const Ref<const Buffer> v = buffer("v", f32, {n});
  auto y = buffer("y", f32, {n});
  auto c = compute_of(
      {v}, {map_stage(y, [&](const Indices& i) { return at(v, i) + literal(f32, 1); })}, {y});
  EXPECT_EQ(to_text(*with_excess_precision(c)), to_text(*c));
}

}  // namespace
}  // namespace tenon::loop
