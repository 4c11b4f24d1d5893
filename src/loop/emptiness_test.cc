#include "loop/emptiness.h"

#include <gtest/gtest.h>

#include "loop/tensors_testing.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

struct Nest {
  const Ref<const Buffer> x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
  const Ref<const Var> i = var("i", i64), j = var("j", i64);
  const StmtRef write = store(y, {i}, load(x, {i}));

  static StmtRef turns(const Ref<const Var>& v, const Dim& extent, const StmtRef& body) {
    return for_loop(v, index(0), dim_value(extent), ForKind::kSerial, body);
  }
  static std::string condition(const StmtRef& s, bool in_bounds = true) {
    Emptiness emptiness(in_bounds);
    const ExprRef& acts = emptiness.may_act(*s);
    return is_always_true(acts) ? "" : to_text(acts);
  }
};

TEST(Emptiness, IsOfTheLoopsInALoop) {
  const Nest nest;
  EXPECT_EQ(Nest::condition(nest.write), "");
  EXPECT_EQ(Nest::condition(Nest::turns(nest.j, m, nest.write)), "0 < m");
  EXPECT_EQ(Nest::condition(Nest::turns(nest.j, m, Nest::turns(nest.i, n, nest.write))),
            "(0 < m) & (0 < n)");
  EXPECT_EQ(Nest::condition(Nest::turns(nest.j, Dim(3), Nest::turns(nest.i, n, nest.write))),
            "0 < n");
}

TEST(Emptiness, AnythingThatIsAlwaysDoneCounts) {
  const Nest nest;
  const StmtRef inner = Nest::turns(nest.j, m, nest.write);
  EXPECT_EQ(Nest::condition(seq({inner, nest.write})), "");
  EXPECT_EQ(Nest::condition(seq({inner, Nest::turns(nest.j, n, nest.write)})), "(0 < m) | (0 < n)");
  EXPECT_EQ(Nest::condition(if_then(binary(BinaryOp::kLt, index(4), dim_value(m)), nest.write)),
            "4 < m");
  // A condition on the place is unknown before the loop.
  EXPECT_EQ(Nest::condition(if_then(binary(BinaryOp::kLt, nest.j, dim_value(m)), nest.write)), "");
}

// Of a row's scratch, the row's own elements alone matter.
TEST(Emptiness, OwnScratchDoesNotCount) {
  const Nest nest;
  const Ref<const Buffer> scratch = buffer("scratch", f32, {Dim(4)});
  const StmtRef fill = store(scratch, {index(0)}, literal(f32, 1));
  const StmtRef row = seq({fill, Nest::turns(nest.i, n, nest.write)});
  EXPECT_EQ(Nest::condition(row), "");
  EXPECT_EQ(Nest::condition(alloc(scratch, row)), "0 < n");
  EXPECT_EQ(Nest::condition(Nest::turns(nest.j, m, alloc(scratch, row))), "(0 < m) & (0 < n)");
  EXPECT_EQ(Nest::condition(alloc(scratch, Nest::turns(nest.j, m, row))), "(0 < m) & (0 < n)");
  EXPECT_EQ(Nest::condition(alloc(scratch, row), /*in_bounds=*/false), "");
}

// An index that is out of range must be found although nothing is stored.
TEST(Emptiness, WhatMayFailCounts) {
  const Nest nest;
  const StmtRef inner = Nest::turns(nest.j, m, nest.write);
  const auto with = [&](const ExprRef& value) { return let(var("v", value->dtype), value, inner); };
  EXPECT_EQ(Nest::condition(with(load(nest.x, {nest.i}))), "0 < m");
  EXPECT_EQ(Nest::condition(with(load(nest.x, {nest.i})), /*in_bounds=*/false), "");
  EXPECT_EQ(Nest::condition(with(checked_index(nest.i, n))), "");
  EXPECT_EQ(Nest::condition(with(binary(BinaryOp::kFloorDiv, nest.i, dim_value(n)))), "");
}

}  // namespace
}  // namespace tenon::loop
