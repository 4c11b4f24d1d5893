#include "loop/work.h"

#include <gtest/gtest.h>

#include "loop/statements_testing.h"

namespace tenon::loop {
namespace {

TEST(Work, IsTheStoresOfAllTurns) {
  const Dim n = Dim::symbol("n");
  auto c = buffer("c", f32, {n});
  auto i = var("i", i64), j = var("j", i64);
  const StmtRef one = put(c, {i}, literal(f32, 0));
  auto loop = [&](const Ref<const Var>& v, const ExprRef& extent, const StmtRef& body) {
    return nest(v, index(0), extent, ForKind::kSerial, body);
  };
  auto work = [&](const StmtRef& body) {
    return work_of(*kernel("k", {}, {c}, body), [](std::string_view name) {
      return name == "n" ? std::optional<int64_t>(1000) : std::nullopt;
    });
  };
  EXPECT_EQ(work(loop(i, dim_value(n), one)), 1000);
  EXPECT_EQ(work(loop(i, dim_value(n), loop(j, binary(BinaryOp::kAdd, index(1), index(2)), one))),
            3000);
  EXPECT_EQ(work(loop(i, dim_value(n), both({one, one}))), 2000);
  EXPECT_EQ(work(loop(i, dim_value(Dim::symbol("other")), one)), 1);
  EXPECT_EQ(work(loop(i, index(-5), one)), 0);
  // A tile's remainder: as in the first iteration.
  const ExprRef rest =
      binary(BinaryOp::kMin, index(64),
             binary(BinaryOp::kSub, dim_value(n), binary(BinaryOp::kMul, i, index(64))));
  EXPECT_EQ(work(loop(i, index(16), loop(j, rest, one))), 16 * 64);
  const StmtRef longer = when(less(i, j), one, loop(i, index(9), one));
  EXPECT_EQ(work(loop(i, dim_value(n), longer)), 9000);
  EXPECT_EQ(work(loop(i, index(INT64_MAX), loop(j, index(INT64_MAX), one))),
            static_cast<double>(INT64_MAX) * static_cast<double>(INT64_MAX));
}

// A walk along every path would take 2^100 steps, and one on the native stack overflow it.
TEST(Work, OfSizesThatShareTheirParts) {
  auto c = buffer("c", f32, {Dim(1)});
  auto i = var("i", i64);
  const auto work = [&](const ExprRef& extent) {
    const StmtRef one = put(c, {index(0)}, literal(f32, 0));
    const StmtRef body = nest(i, index(0), extent, ForKind::kSerial, one);
    return work_of(*kernel("k", {}, {c}, body), [](std::string_view) { return 3; });
  };
  const ExprRef n = dim_value(Dim::symbol("n"));
  ExprRef shared = n, deep = n;
  for (int64_t level = 1; level <= 100; ++level) {
    shared = binary(BinaryOp::kMin, shared, binary(BinaryOp::kAdd, shared, index(level)));
  }
  EXPECT_EQ(work(shared), 3);
  for (int level = 0; level < 200'000; ++level) deep = binary(BinaryOp::kMin, deep, n);
  EXPECT_EQ(work(deep), 3);
}

}  // namespace
}  // namespace tenon::loop
