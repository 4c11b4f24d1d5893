// Schedules and code together: random computes, compiled, against the evaluator.
#include <gtest/gtest.h>

#include "codegen/llvm/jit_testing.h"
#include "loop/inline_stages.h"
#include "loop/random_compute.h"
#include "loop/schedule.h"

namespace tenon::codegen {
namespace {

using namespace loop;

void compare(unsigned first, unsigned end, const Target& target, int level = 1) {
  Array<KernelRef> kernels;
  for (unsigned seed = first; seed < end; ++seed) {
    ScheduleOptions options;
    options.target = target.facts();
    options.level = level;
    kernels.push_back(
        lower(*inline_stages(RandomCompute(seed).compute()), cat("random", seed), options));
  }
  OpenedKernels opened(compile_kernels(kernels, target));
  for (unsigned seed = first; seed < end; ++seed) {
    RandomCompute r(seed);
    const KernelRef& kernel = kernels[seed - first];
    SCOPED_TRACE(cat("seed ", seed, "\n", to_text(*r.compute()), to_text(*kernel)));
    std::vector<Tensor> expected = evaluate(*r.compute(), r.inputs(), r.symbols());
    std::vector<Any> arguments;
    for (const Tensor& t : r.inputs()) arguments.push_back(Any(t));
    std::vector<Tensor> found;
    for (const Tensor& t : expected) {
      found.push_back(Tensor::empty(t.shape(), t.dtype()));
      arguments.push_back(Any(found.back()));
    }
    for (const String& s : kernel->integers) {
      arguments.push_back(Any(r.symbols().find(s.view())->second));
    }
    ASSERT_EQ(opened.call(std::string(kernel->name.view()), arguments), 0);
    for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-3);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ScheduleEmit, RandomComputesOnThisMachine) {
  compare(0, 100, host_target());
}
TEST(ScheduleEmit, RandomComputesWithPlainLoops) {
  compare(150, 200, host_target(), 0);
}
TEST(ScheduleEmit, RandomComputesOnTheBaseline) {
  compare(100, 150, baseline_target());
}

// A map is cut into parts whose sizes are computed in the loop; what they come to decides, in
// vectors of two elements too.
TEST(ScheduleEmit, AMapIsSharedWhereItsWorkIsWorthIt) {
  const Dim n = Dim::symbol("n");
  for (const Dim& rows : {n, Dim(300)}) {
    for (const DataType dtype : {f32, f64}) {
      auto x = buffer("x", dtype, {rows, 512}), y = buffer("y", dtype, {rows, 512});
      auto stage = map_stage(y, [&](const std::vector<ExprRef>& i) {
        return binary(BinaryOp::kMax, load(x, {i[0], i[1]}), literal(dtype, 0));
      });
      const ComputeRef compute = whole_kernel({x}, {stage}, {y}, /*in_bounds=*/true);
      ScheduleOptions options;
      options.target.vector_bytes = 16;
      OpenedKernels opened(compile_kernels({lower(*compute, "relu", options)}, baseline_target()));
      auto shares = [&](int64_t size) {
        opened.parallel_calls = 0;
        Tensor in = Tensor::empty({size, 512}, dtype), out = Tensor::empty({size, 512}, dtype);
        EXPECT_EQ(opened.call("relu", {in, out}), 0);
        return opened.parallel_calls;
      };
      EXPECT_EQ(shares(300), 1);
      if (!rows.is_const()) {
        EXPECT_EQ(shares(10), 0);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
