#include "driver/model_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "driver/shown_names.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "support/error_testing.h"

namespace tenon::driver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kProgram[] =
    R"(fn @main(%x: tensor[n, 8; f32], %w: tensor[8, 3; f32]) -> tensor[n, 3; f32] {
  %0 = matmul(%x, %w)
  %1 = relu(%0)
  %2 = add(%1, %0)
  %2
})";

ModelGraph described(const char* text, int level = 2) {
  initialise();
  const graph::Module module = graph::parse_module(text, "test.tn");
  CompileOptions options;
  options.level = level;
  options.libraries = "none";
  return describe_model(module, run_passes(module, options));
}

std::vector<std::string> labels(const std::vector<GraphNode>& nodes) {
  std::vector<std::string> out;
  for (const GraphNode& node : nodes) out.push_back(node.label);
  return out;
}

TEST(ModelGraph, HasTheOperatorsBeforeCompilation) {
  const ModelGraph graph = described(kProgram);
  ASSERT_EQ(graph.functions.size(), 1u);
  const std::vector<GraphNode>& nodes = graph.functions[0].before;
  EXPECT_THAT(labels(nodes), ElementsAre("x", "w", "matmul", "relu", "add", "result"));
  EXPECT_THAT(nodes[4].inputs, ElementsAre(2, 3));
  EXPECT_EQ(nodes[2].type, "tensor[n, 3; f32]");
}

TEST(ModelGraph, HasTheKernelsAfterwardsWithTheValuesThatTheyWrite) {
  const ModelGraph graph = described(kProgram, 0);
  const std::vector<GraphNode>& nodes = graph.functions[0].after;
  ASSERT_EQ(nodes.size(), 6u);
  EXPECT_TRUE(nodes[2].is_kernel);
  EXPECT_THAT(nodes[2].inputs, ElementsAre(0, 1));
  EXPECT_EQ(nodes[2].type, "tensor[n, 3; f32]");
  EXPECT_THAT(nodes[4].inputs, ElementsAre(2, 3));
  EXPECT_THAT(nodes[5].inputs, ElementsAre(4));
  EXPECT_TRUE(graph.kernels.contains(nodes[3].label));
}

TEST(ModelGraph, CountsAMultiplyAddAsTwoOperations) {
  const ModelGraph graph = described(
      "fn @main(%x: tensor[n, 8; f32], %w: tensor[8, 3; f32]) -> tensor[n, 3; f32] { matmul(%x, "
      "%w) "
      "}");
  ASSERT_EQ(graph.kernels.size(), 1u);
  const KernelFacts& kernel = graph.kernels.begin()->second;
  EXPECT_EQ(to_text(kernel.flops.value()), "48*" + kernel.symbols.at(0).name);
  EXPECT_EQ(kernel.symbols[0].argument, 0u);
  EXPECT_EQ(kernel.symbols[0].axis, 0u);
}

// A loop that became one kernel (fuse_loops) takes its step's operations in each iteration: of 4
// units, 32 for the product and 2 each for a sum and tanh.
constexpr char kLoop[] =
    R"(fn @main(%x: tensor[t, 1, 4; f32], %r: tensor[4, 4; f32]) -> (tensor[1, 4; f32], tensor[t, 1, 4; f32]) attrs(results=["last", "all"]) {
  %zero = full(tensor[f32]{0}, shape=[1, 4])
  %none = full(tensor[f32]{0}, shape=[0, 1, 4])
  %steps = size(t)
  %end = loop (%i: i64 = 0, %h: tensor[1, 4; f32] = %zero, %ys: tensor[rank=3; f32] = %none) while { less(%i, %steps) } {
    %at = to_tensor(%i)
    %row = gather(%x, %at)
    %recurrent = matmul(%h, %r)
    %sum = add(%row, %recurrent)
    %y = tanh(%sum)
    %known = match_shape(%ys, [k, 1, 4])
    %more = append(%known, %y)
    %next = add(%i, 1)
    (%next, %y, %more)
  }
  %all = match_shape(%end.2, [t, 1, 4])
  (%end.1, %all)
})";

TEST(ModelGraph, CountsTheIterationsOfALoopThatIsAKernel) {
  const ModelGraph graph = described(kLoop);
  bool is_found = false;
  for (const auto& [name, kernel] : graph.kernels) {
    is_found |= to_text(kernel.flops.value()) == "40*" + kernel.symbols.at(0).name;
  }
  EXPECT_TRUE(is_found);
  const std::vector<GraphNode>& before = graph.functions.at(0).before;
  EXPECT_THAT(labels(before), testing::IsSupersetOf({"loop", "last, all"}));
}

TEST(ModelGraph, ShowsChoices) {
  const ModelGraph graph = described(R"(fn @main(%b: bool, %x: tensor[4; f32]) -> tensor[4; f32] {
  if %b { exp(%x) } else { %x }
})");
  EXPECT_THAT(labels(graph.functions.at(0).before), ElementsAre("b", "x", "if", "result"));
}

// Any number of nodes may have the same large type.
TEST(ModelGraph, CutsLongTexts) {
  std::string type = "(i64";
  for (int i = 0; i < 200; ++i) type += ", i64";
  type += ")";
  const ModelGraph graph = described(cat("fn @main(%x: ", type, ") -> ", type, " { %x }").c_str());
  const GraphNode& result = graph.functions.at(0).before.at(1);
  EXPECT_EQ(result.type.size(), kLongestName);
  EXPECT_THAT(result.type, testing::EndsWith("…"));
}

TEST(ModelGraph, SurvivesJson) {
  const ModelGraph graph = described(kProgram);
  const std::string json = to_json(graph);
  EXPECT_EQ(to_json(model_graph_from_json(json, "m.tnx")), json);
}

TEST(ModelGraph, DamagedTextIsAnErrorWithItsPlace) {
  const std::string json = to_json(described(kProgram));
  const auto error = [](const std::string& text) {
    return failure_of([&] { model_graph_from_json(text, "m.tnx"); });
  };
  EXPECT_THAT(error(json.substr(0, json.size() / 2)), HasSubstr("the graph of m.tnx"));
  EXPECT_THAT(error("{}"), HasSubstr("a member is missing"));
  std::string later = json;
  later.replace(later.find("\"inputs\":[2,3]"), 14, "\"inputs\":[2,9]");
  EXPECT_THAT(error(later), HasSubstr("an input that is not an earlier node"));
  std::string size = json;
  size.replace(size.find("\"flops\":\""), 9, "\"flops\":\"+");
  EXPECT_THAT(error(size), HasSubstr("no size"));
  for (size_t i = 0; i < json.size(); i += 7) {  // no crash on any damage
    std::string text = json;
    text[i] = static_cast<char>(text[i] ^ 4);
    error(text);
  }
}

}  // namespace
}  // namespace tenon::driver
