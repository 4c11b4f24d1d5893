// Kernels whose frames would need too much of the native stack are refused.
#include <gtest/gtest.h>

#include "codegen/llvm/jit_testing.h"
#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: the vocabulary of the kernels below

const Dim n = Dim::symbol("n");

void expect_too_much_stack(const KernelRef& k) {
  try {
    compile_kernels({k}, host_target());
    ADD_FAILURE() << "it compiles";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
    EXPECT_EQ(e.message(), cat("kernel '", k->name, "' needs too much stack"));
    EXPECT_NE(e.render().find("at most 65536"), std::string::npos) << e.render();
    EXPECT_NE(e.render().find("use narrower vectors"), std::string::npos) << e.render();
  }
}

// The loads are used twice, in orders so different that all of them are live at once.
TEST(StackUse, SpilledVectorsAreCounted) {
  auto x = buffer("x", f64, {n}), y = buffer("y", f64, {n});
  auto v = var("v", i64);
  auto all_twice = [&](int64_t loads) {
    std::vector<ExprRef> values;
    for (int64_t k = 0; k < loads; ++k) values.push_back(at(x, {v + index(k)}));
    ExprRef forward = values.front(), backward = values.back();
    for (size_t k = 1; k < values.size(); ++k) {
      forward = forward + values[k];
      backward = backward * values[values.size() - 1 - k];
    }
    return kernel("wide", {x}, {y},
                  nest(v, index(0), index(64), ForKind::kVector, put(y, {v}, forward * backward)));
  };
  compile_kernels({all_twice(20)}, host_target());
  expect_too_much_stack(all_twice(100));
}

// Stack buffers of a task count with those of the function around it; workspace takes the rest.
TEST(StackUse, BuffersOfATaskShareTheStack) {
  auto y = buffer("y", f32, {n});
  auto p = var("p", i64);
  auto with_buffers = [&](const std::string& prefix, const StmtRef& inner) {
    StmtRef body = inner;
    for (int i = 0; i < 3; ++i) {
      auto s = buffer(cat(prefix, i), f32, {Dim(3800)});
      body = scratch(s, both({put(s, {index(0)}, literal(f32, 1)), body,
                              put(y, {index(0)}, at(s, {index(0)}))}));
    }
    return body;
  };
  const StmtRef task = with_buffers("inner", put(y, {index(0)}, literal(f32, 2)));
  const StmtRef loop = nest(p, index(0), dim_value(n), ForKind::kParallel, task);
  OpenedKernels opened(
      compile_kernels({kernel("shared", {}, {y}, with_buffers("outer", loop))}, host_target()));
  Tensor result = Tensor::empty({1}, f32);
  ASSERT_EQ(opened.call("shared", {result}), 0);
  EXPECT_EQ(result.data_as<float>()[0], 1);
  EXPECT_EQ(opened.workspaces_held, 0);
}

}  // namespace
}  // namespace tenon::codegen
