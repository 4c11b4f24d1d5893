#include "graph/pass/fuse_operators.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tenon::graph
