#include <gtest/gtest.h>

#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

TEST(Learned, TreeEnsembleChecksItsOperands) {
  auto error = [](const std::vector<int64_t>& x, const std::vector<int64_t>& nodes,
                  DataType weights, const Attrs& attributes) {
    return type_error("tree_ensemble",
                      {sample_tensor(f32, x), sample_tensor(i32, nodes), sample_tensor(f32, {3}),
                       sample_tensor(i32, {1}), sample_tensor(i32, {2}), sample_tensor(i32, {2}),
                       sample_tensor(weights, {2})},
                      attributes);
  };
  const Attrs one = attrs({{"outputs", 1}});
  EXPECT_EQ(error({5, 2}, {3, 4}, f32, one), "no error");
  EXPECT_NE(error({5}, {3, 4}, f32, one).find("rank 1"), std::string::npos);
  EXPECT_NE(error({5, 2}, {3, 3}, f32, one).find("numbers of a node"), std::string::npos);
  EXPECT_NE(error({5, 2}, {2, 4}, f32, one).find("nodes and splits"), std::string::npos);
  EXPECT_NE(error({5, 2}, {3, 4}, f64, one).find("f64"), std::string::npos);
  EXPECT_NE(error({5, 2}, {3, 4}, f32, attrs({{"outputs", -1}})).find("'outputs' is -1"),
            std::string::npos);
  EXPECT_NE(error({5, 2}, {3, 4}, f32, attrs({{"outputs", 1}, {"aggregate", "mean"}}))
                .find("'aggregate' is \"mean\", expected one of sum, min, max"),
            std::string::npos);
}

TEST(Learned, PairwiseCouplingChecksThePairs) {
  auto error = [](int64_t pairs, int64_t classes) {
    return type_error("pairwise_coupling", {sample_tensor(f32, {2, pairs})},
                      attrs({{"classes", classes}}));
  };
  EXPECT_EQ(error(3, 3), "no error");
  EXPECT_NE(error(2, 3).find("pairs of classes"), std::string::npos);
  EXPECT_NE(error(0, 1).find("'classes' is 1, expected 2 to 32768"), std::string::npos);
}

}  // namespace
}  // namespace tenon::graph
