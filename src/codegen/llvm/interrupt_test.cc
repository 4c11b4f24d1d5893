// Kernels poll whether their call should stop, however their loops are nested.
#include <gtest/gtest.h>

#include "codegen/llvm/emit.h"
#include "codegen/llvm/jit_testing.h"
#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

constexpr int64_t kForever = int64_t{1} << 50;

// Runs `body`, which stores to `c`, a buffer of one element, and may read the integers "n" and "m".
struct Outcome {
  int32_t code;
  int64_t polls;
  int64_t held;
};
Outcome run(const Ref<const Buffer>& c, const StmtRef& body, int64_t n, int64_t m,
            int64_t polls_until_stop = 3) {
  OpenedKernels opened(compile_kernels({kernel("k", {}, {c}, body, {"n", "m"})}, host_target()));
  opened.polls_until_stop = polls_until_stop;
  const int32_t code = opened.call("k", {Any(Tensor::empty({1}, f32)), Any(n), Any(m)});
  return {code, opened.polls, opened.workspaces_held};
}

StmtRef serial(const Ref<const Var>& v, const ExprRef& extent, const StmtRef& body) {
  return nest(v, index(0), extent, ForKind::kSerial, body);
}

struct Interrupt : testing::Test {
  Ref<const Buffer> c = buffer("c", f32, {Dim(1)});
  Ref<const Var> i = var("i", i64), j = var("j", i64), k = var("k", i64);
  ExprRef n = dim_value(Dim::symbol("n")), m = dim_value(Dim::symbol("m"));
  StmtRef turn = put(c, {index(0)}, at(c, {index(0)}) + cast(f32, i));

  void stops(const StmtRef& body, int64_t n_value, int64_t m_value) {
    const Outcome stopped = run(c, body, n_value, m_value);
    EXPECT_EQ(stopped.code, -1);
    EXPECT_EQ(stopped.polls, 3);
    EXPECT_EQ(stopped.held, 0);
  }
};

TEST_F(Interrupt, StopsALoopOfAnySize) {
  stops(serial(i, n, turn), kForever, 0);
  stops(serial(i, index(kForever), turn), 0, 0);
}

TEST_F(Interrupt, StopsNests) {
  stops(serial(j, n, serial(i, m, turn)), 2, kForever);
  stops(serial(j, n, serial(i, m, turn)), kForever, 1);
  stops(serial(j, n, serial(i, index(7), turn)), kForever, 0);
  stops(serial(k, index(5000), serial(j, index(50'000), serial(i, index(50'000), turn))), 0, 0);
}

TEST_F(Interrupt, TurnsThatStoreNothingAreLeftOut) {
  for (const StmtRef& nest :
       {serial(j, n, serial(i, m, turn)),
        serial(k, n, serial(j, n, both({serial(i, m, turn), serial(i, m, turn)})))}) {
    const Outcome done = run(c, nest, kForever, 0, 1);
    EXPECT_EQ(done.code, 0);
    EXPECT_EQ(done.polls, 0);
  }
}

// A turn whose work is in the value of a let, beside an inner loop that hardly runs.
TEST_F(Interrupt, CountsWorkOutsideOfStores) {
  ExprRef value = cast(f64, i);
  for (int levels = 0; levels < 100; ++levels) value = unary(UnaryOp::kExp, value);
  const StmtRef body =
      let(var("v", f64), value, both({serial(j, m, turn), serial(k, index(1), turn)}));
  const Outcome stopped = run(c, serial(i, n, body), 10'000, 0, 1);
  EXPECT_EQ(stopped.code, -1);
}

TEST_F(Interrupt, StopsTasksOfParallelLoops) {
  stops(nest(j, index(0), n, ForKind::kParallel, serial(i, m, turn)), 3, kForever);
}

TEST_F(Interrupt, GivesWorkspaceBack) {
  auto scratch_buffer = buffer("s", f32, {Dim(1 << 20)});
  stops(scratch(scratch_buffer, serial(i, n, turn)), kForever, 0);
}

TEST_F(Interrupt, SmallWorkIsNotInterrupted) {
  const Outcome done = run(c, serial(j, n, serial(i, m, turn)), 100, 1000, 1);
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.polls, 0);
}

TEST_F(Interrupt, CountsEveryTurnAcrossParts) {
  // 3,000,000 additions of 1 in f64 are exact, however they are split.
  auto sum = buffer("c", f64, {Dim(1)});
  const StmtRef add = put(sum, {index(0)}, at(sum, {index(0)}) + literal(f64, 1));
  OpenedKernels opened(
      compile_kernels({kernel("k", {}, {sum}, serial(i, n, add), {"n", "m"})}, host_target()));
  Tensor total = Tensor::empty({1}, f64);
  *total.data_as<double>() = 0;
  ASSERT_EQ(opened.call("k", {Any(total), Any(int64_t{3'000'000}), Any(int64_t{0})}), 0);
  EXPECT_EQ(*total.data_as<double>(), 3'000'000);
  EXPECT_GE(opened.polls, 5);
}

}  // namespace
}  // namespace tenon::codegen
