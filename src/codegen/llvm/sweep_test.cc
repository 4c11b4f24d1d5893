// Loops that alternate their direction (loop/sweep.h).
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/llvm/jit_testing.h"
#include "loop/schedule.h"
#include "loop/statements_testing.h"
#include "loop/sweep.h"
#include "loop/tensors_testing.h"
#include "loop/walk.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

// A row, or more, times a matrix in panels of 32 columns.
KernelRef product(int64_t panels, const Dim& depth, const Dim& rows = 1,
                  const TargetFacts& target = host_target().facts()) {
  auto x = buffer("x", f32, {rows, depth}), w = buffer("w", f32, {panels, depth, 32}),
       y = buffer("y", f32, {rows, panels * 32});
  const ComputeRef c =
      compute_of({x, w},
                 {reduce_stage(y, Reduction::kSum, {depth},
                               [&](const Indices& i, const Indices& k) {
                                 ExprRef panel = binary(BinaryOp::kFloorDiv, i[1], index(32)),
                                         column = binary(BinaryOp::kMod, i[1], index(32));
                                 return at(x, {i[0], k[0]}) * at(w, {panel, k[0], column});
                               })},
                 {y});
  ScheduleOptions options;
  options.target = target;
  return lower(*c, "product", options);
}

int sweeps_in(const KernelRef& kernel) {
  int found = 0;
  for_each_stmt(kernel->body, [&](const StmtRef& s) {
    if (s->kind != StmtKind::kFor) return;
    const auto& loop = static_cast<const For&>(*s);
    found += loop.loop == ForKind::kParallel && is_sweep(*kernel, loop);
  });
  return found;
}

TEST(Sweep, IsALoopThatReadsALargeArrayOnce) {
  EXPECT_EQ(sweeps_in(product(64, 512)), 1);               // 4 MB in pieces of 512 KB
  EXPECT_EQ(sweeps_in(product(64, 16)), 0);                // 128 KB
  EXPECT_EQ(sweeps_in(product(64, Dim::symbol("k"))), 0);  // of any size
  // Any number of rows: the loops for few of them, where a panel is as wide as a tile.
  TargetFacts avx512;
  avx512.vector_bytes = 64;
  avx512.vector_registers = 32;
  EXPECT_EQ(sweeps_in(product(64, 512, Dim::symbol("m"), avx512)), 1);
  auto x = buffer("x", f32, {1024, 1024}), y = buffer("y", f32, {1024, 1024});
  const ComputeRef copy =
      compute_of({x}, {map_stage(y, [&](const Indices& i) { return at(x, i) * at(x, i); })}, {y});
  ScheduleOptions options;
  options.target = host_target().facts();
  EXPECT_EQ(sweeps_in(lower(*copy, "square", options)), 0);  // writes as much as it reads
}

TEST(Sweep, DoesntFail) {
  constexpr int64_t kRows = 64, kColumns = 8192;
  const Ref<const Var> i = var("i", i64);
  auto x = buffer("x", i64, {kRows * kColumns}), y = buffer("y", i64, {kRows});
  const ExprRef read = at(x, {i * index(kColumns)});
  const auto sweeps = [&](const ExprRef& value) {
    auto made = make<Kernel>(*kernel(
        "k", {x}, {y}, nest(i, index(0), index(kRows), ForKind::kParallel, put(y, {i}, value))));
    made->in_bounds = true;
    return sweeps_in(made);
  };
  EXPECT_EQ(sweeps(binary(BinaryOp::kFloorDiv, read, index(3))), 1);
  EXPECT_EQ(sweeps(binary(BinaryOp::kFloorDiv, index(3), read)), 0);
}

// Iterations that write the same element, which those of a schedule don't, show their order.
TEST(Sweep, GoesForthAndBack) {
  constexpr int64_t kRows = 64, kColumns = 8192;
  const Ref<const Var> i = var("i", i64);
  auto x = buffer("x", f32, {kRows * kColumns}), y = buffer("y", f32, {1});
  auto last = make<Kernel>(*kernel("last", {x}, {y},
                                   nest(i, index(0), index(kRows), ForKind::kParallel,
                                        put(y, {index(0)}, at(x, {i * index(kColumns)})))));
  last->in_bounds = true;
  Tensor rows = Tensor::empty({kRows * kColumns}, f32), read = Tensor::empty({1}, f32);
  for (int64_t k = 0; k < kRows; ++k) {
    rows.data_as<float>()[k * kColumns] = static_cast<float>(k);
  }
  OpenedKernels opened(compile_kernels({last}, host_target()));
  for (const float expected : {63, 0, 63, 0}) {
    ASSERT_EQ(opened.call("last", {rows, read}), 0);
    EXPECT_EQ(opened.parallel_calls, 0);
    EXPECT_EQ(*read.data_as<float>(), expected);
  }
}

TEST(Sweep, GivesTheSameBitsBothWays) {
  const KernelRef kernel = product(67, 512);  // whole blocks of panels, and a rest
  std::mt19937 rng(5);
  const Tensor x = random_tensor(f32, {1, 512}, &rng), w = random_tensor(f32, {67, 512, 32}, &rng);
  OpenedKernels opened(compile_kernels({kernel}, host_target()));
  std::vector<Tensor> results;
  for (int call = 0; call < 3; ++call) {
    results.push_back(Tensor::empty({1, 67 * 32}, f32));
    ASSERT_EQ(opened.call("product", {x, w, results.back()}), 0);
    EXPECT_EQ(std::memcmp(results[0].data(), results.back().data(), 67 * 32 * sizeof(float)), 0);
  }
  expect_close(results[0], evaluate(*kernel, {x, w}, {})[0], 1e-4);
}

TEST(Sweep, TakesAnyNumberOfRows) {
  for (const int64_t panels : {64, 67, 12}) {
    const KernelRef kernel = product(panels, 40, Dim::symbol("m"));
    std::mt19937 rng(6);
    OpenedKernels opened(compile_kernels({kernel}, host_target()));
    const Tensor w = random_tensor(f32, {panels, 40, 32}, &rng);
    for (const int64_t rows : {1, 6, 7}) {
      const Tensor x = random_tensor(f32, {rows, 40}, &rng),
                   y = Tensor::empty({rows, panels * 32}, f32);
      ASSERT_EQ(opened.call("product", {x, w, y}), 0);
      expect_close(y, evaluate(*kernel, {x, w}, {{"m", rows}})[0], 1e-4);
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
