#include "graph/pass/fuse_operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "graph/pass/simplify.h"

namespace tenon::graph {
namespace {

TEST(FusedOperators, AreWithoutThePrefixAndTheHash) {
  EXPECT_EQ(fused_operators("fused_relu_max_pool_3c583c"), "relu_max_pool");
  EXPECT_EQ(fused_operators("fused_add_000012"), "add");
  // Another kernel had the name.
  EXPECT_EQ(fused_operators("fused_relu_max_pool_3c583c_1"), "relu_max_pool");
}

TEST(FusedOperators, AreAllOfAnotherName) {
  for (const char* name : {"gelu_fa2", "relu_2", "fused_relu", "fused_3c583c", "attend_3c583c"}) {
    EXPECT_EQ(fused_operators(name), name);
  }
}

// A join of many operands becomes kernels of bounded size (with simplify).
Module join_of(int operands, const char* row = "2") {
  std::string params, args;
  for (int i = 0; i < operands; ++i) {
    params += cat(i ? ", " : "", "%a", i, ": tensor[n", i, ", ", row, "; f32]");
    args += cat("%a", i, ", ");
  }
  return parse_module(cat("fn @main(", params, ") -> tensor[*; f32] { concat(", args, "axis=0) }"),
                      "join.tn");
}

// The numbers of inputs of the kernels that a function becomes.
std::vector<size_t> kernels_of(const Module& source) {
  PassContext context;
  const Module module = fuse_operators(simplify(source, context), context);
  check_module(module);
  std::vector<size_t> inputs;
  for (const auto& [name, function] : module->functions) {
    if (function->is_primitive()) inputs.push_back(function->params.size());
  }
  return inputs;
}

class WideConcat : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_graph_types();
    register_operators();
  }
};

TEST_F(WideConcat, IsMadeOfKernelsWithFewOperands) {
  const std::vector<size_t> inputs = kernels_of(join_of(1000));
  EXPECT_GE(inputs.size(), 3u);
  EXPECT_LE(std::ranges::max(inputs), 384u);
}

TEST_F(WideConcat, OfFewOperandsIsOneKernel) {
  EXPECT_EQ(kernels_of(join_of(128)), std::vector<size_t>{128});
}

TEST_F(WideConcat, OfRowsOfAnySizeHasFewerOperandsInAKernel) {
  EXPECT_LE(std::ranges::max(kernels_of(join_of(300, "b"))), 64u);
}

// Each is a loop nest with values of its own.
TEST_F(WideConcat, LongChainsOfScattersAreSeveralKernels) {
  std::string body = "%y0 = relu(%x)\n";
  for (int i = 0; i < 100; ++i) {
    body += cat("%y", i + 1, " = scatter_nd(%y", i, ", %i, %u)\n");
  }
  const Module module = parse_module(
      cat("fn @main(%x: tensor[n; f32], %i: tensor[m, 1; i64], %u: tensor[m; f32]) -> ",
          "tensor[n; f32] {\n", body, "%y100\n}"),
      "chain.tn");
  PassContext context;
  const Module fused = fuse_operators(module, context);
  for (const auto& [name, function] : fused->functions) {
    if (function->is_primitive()) {
      EXPECT_LE(function->body->bindings.size(), 33u);
    }
  }
}

}  // namespace
}  // namespace tenon::graph
