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
Module join_of(int operands) {
  std::string params, args;
  for (int i = 0; i < operands; ++i) {
    params += cat(i ? ", " : "", "%a", i, ": tensor[n, 2; f32]");
    args += cat("%a", i, ", ");
  }
  return parse_module(cat("fn @main(", params, ") -> tensor[", operands, "*n, 2; f32] { concat(",
                          args, "axis=0) }"),
                      "join.tn");
}

// The numbers of inputs of the kernels that a join becomes.
std::vector<size_t> kernels_of_join(int operands) {
  register_graph_types();
  register_operators();
  PassContext context;
  const Module module = fuse_operators(simplify(join_of(operands), context), context);
  check_module(module);
  std::vector<size_t> inputs;
  for (const auto& [name, function] : module->functions) {
    if (function->is_primitive()) inputs.push_back(function->params.size());
  }
  return inputs;
}

TEST(WideConcat, IsMadeOfKernelsWithFewOperands) {
  const std::vector<size_t> inputs = kernels_of_join(1000);
  EXPECT_GE(inputs.size(), 3u);
  EXPECT_LE(std::ranges::max(inputs), 384u);
}

TEST(WideConcat, OfFewOperandsIsOneKernel) {
  EXPECT_EQ(kernels_of_join(128), std::vector<size_t>{128});
}

}  // namespace
}  // namespace tenon::graph
