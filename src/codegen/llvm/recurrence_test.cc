// Kernels of whole loops: parallel loops within a serial one.
#include <gtest/gtest.h>

#include "codegen/llvm/jit_testing.h"
#include "loop/schedule.h"
#include "loop/sweep.h"
#include "loop/tensors_testing.h"
#include "loop/walk.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

// An Elman network of `units`: y = tanh(x[turn] + h r), where h is the last y, and r in panels.
KernelRef elman(int64_t units) {
  const Dim turns = Dim::symbol("t");
  auto x = buffer("x", f32, {turns, 1, units}), turn = buffer("turn", i64, {}),
       h = buffer("h", f32, {1, units}), r = buffer("r", f32, {units / 32, units, 32}),
       sum = buffer("sum", f32, {1, units}), y = buffer("y", f32, {1, units});
  const ComputeRef step = compute_of(
      {x, turn, h, r},
      {reduce_stage(sum, Reduction::kSum, {units},
                    [&](const Indices& i, const Indices& k) {
                      return at(h, {i[0], k[0]}) *
                             at(r, {binary(BinaryOp::kFloorDiv, i[1], index(32)), k[0],
                                    binary(BinaryOp::kMod, i[1], index(32))});
                    }),
       map_stage(y,
                 [&](const Indices& i) {
                   return unary(UnaryOp::kTanh, at(x, {at(turn, {}), i[0], i[1]}) + at(sum, i));
                 })},
      {y});
  ScheduleOptions options;
  options.target = host_target().facts();
  return lower(*recurrence(step, turns, 1, {{2, 0}}, {0}), "elman", options);
}

class Elman : public ::testing::TestWithParam<int64_t> {};

TEST_P(Elman, ComputesWhatTheEvaluatorDoes) {
  const int64_t units = GetParam(), turns = 5;
  const KernelRef kernel = elman(units);
  std::mt19937 rng(3);
  const Tensor x = random_tensor(f32, {turns, 1, units}, &rng),
               h = random_tensor(f32, {1, units}, &rng),
               r = random_tensor(f32, {units / 32, units, 32}, &rng);
  for (int64_t i = 0; i < r.count(); ++i) r.data_as<float>()[i] /= static_cast<float>(units);
  const Tensor last = Tensor::empty({1, units}, f32), all = Tensor::empty({turns, 1, units}, f32);
  OpenedKernels opened(compile_kernels({kernel}, host_target()));
  ASSERT_EQ(opened.call("elman", {x, h, r, last, all}), 0);
  EXPECT_EQ(opened.workspaces_held, 0);
  // Threads stand by where a product is worth them, and then each turn's product takes them.
  EXPECT_EQ(opened.teams, units >= 512);
  EXPECT_EQ(opened.parallel_calls, units >= 512 ? turns : 0);
  const std::vector<Tensor> expected = evaluate(*kernel, {x, h, r}, {{"t", turns}});
  expect_close(last, expected[0], 1e-4);
  expect_close(all, expected[1], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Units, Elman, ::testing::Values(64, 512));

TEST(ElmanKernel, IsStoppedBetweenTurns) {
  const int64_t units = 512, turns = 100000;
  OpenedKernels opened(compile_kernels({elman(units)}, host_target()));
  opened.polls_until_stop = 3;
  const Tensor x = Tensor::empty({turns, 1, units}, f32), h = Tensor::empty({1, units}, f32),
               r = Tensor::empty({units / 32, units, 32}, f32),
               last = Tensor::empty({1, units}, f32), all = Tensor::empty({turns, 1, units}, f32);
  EXPECT_NE(opened.call("elman", {x, h, r, last, all}), 0);
  EXPECT_EQ(opened.polls, 3);
}

// One direction of reading large weights after the other.
TEST(ElmanKernel, SweepsItsWeights) {
  int sweeps = 0;
  const KernelRef kernel = elman(512);
  for_each_stmt(kernel->body, [&](const StmtRef& s) {
    if (s->kind != StmtKind::kFor) return;
    const auto& loop = static_cast<const For&>(*s);
    sweeps += loop.loop == ForKind::kParallel && is_sweep(*kernel, loop);
  });
  EXPECT_EQ(sweeps, 1);
}

// A runtime of before these kernels has no function for teams.
TEST(ElmanKernel, RunsInAnOlderRuntime) {
  const int64_t units = 512;
  OpenedKernels opened(compile_kernels({elman(units)}, host_target()));
  opened.make_older();
  const Tensor x = Tensor::empty({1, 1, units}, f32), h = Tensor::empty({1, units}, f32),
               r = Tensor::empty({units / 32, units, 32}, f32),
               last = Tensor::empty({1, units}, f32), all = Tensor::empty({1, 1, units}, f32);
  EXPECT_EQ(opened.call("elman", {x, h, r, last, all}), 0);
  EXPECT_EQ(opened.teams, 0);
}

}  // namespace
}  // namespace tenon::codegen
