// Kernels from loop IR through LLVM, LLD and dlopen, against loop/evaluator.h.
#include "codegen/llvm/emit.h"

#include "codegen/llvm/jit_testing.h"
#include "gtest/gtest.h"
#include "loop/schedule.h"
#include "loop/test_tensors.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: the vocabulary of the kernels below

TEST(Emit, AddsTwoTensors) {
  Dim n = Dim::symbol("n");
  auto a = buffer("a", f32, {n}), b = buffer("b", f32, {n}), c = buffer("c", f32, {n});
  auto compute = compute_of(
      {a, b}, {map_stage(c, [&](const Indices& i) { return at(a, i) + at(b, i); })}, {c});
  ScheduleOptions options;
  options.name = "add";
  options.level = 0;
  KernelRef kernel = schedule(*compute, options);
  OpenedKernels opened(compile_kernels({kernel}, host_target()));
  std::mt19937 rng(1);
  Tensor x = random_tensor(f32, {100}, &rng), y = random_tensor(f32, {100}, &rng);
  Tensor z = Tensor::empty({100}, f32);
  ASSERT_EQ(opened.call("add", {x, y, z}), 0);
  expect_close(z, evaluate(*kernel, {x, y})[0], 0);
}

}  // namespace
}  // namespace tenon::codegen
