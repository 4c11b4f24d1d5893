#include "report/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vm/asm/assemble.h"

namespace tenon::report {
namespace {

using driver::GraphNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<Drawing> drawing_of(const std::string& name) {
  GraphNode input, op;
  input.role = GraphNode::Role::Parameter;
  input.label = "x";
  input.type = "tensor[n; f32]";
  op.label = "relu";
  op.sources = {name};
  op.inputs = {0};
  return {{"main", {input, op}}};
}

TEST(Picture, NamesNodesWithTheirOnnxNamesAndShapes) {
  const std::string svg = to_svg(drawing_of("/layer1/Relu"));
  EXPECT_THAT(svg, HasSubstr(">/layer1/Relu</text>"));
  EXPECT_THAT(svg, HasSubstr(">tensor[n; f32]</text>"));
  EXPECT_THAT(to_dot(drawing_of("/layer1/Relu")), HasSubstr("n1 [label=\"relu\\n/layer1/Relu\"]"));
}

TEST(Picture, HostileNamesStayText) {
  const std::string svg = to_svg(drawing_of("</text><script>alert(1)</script>\x01\xff"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("\x01")));
  EXPECT_THAT(svg, Not(HasSubstr("\xff")));
  // What turns text around, or is a command to a terminal.
  const std::string turning = to_svg(drawing_of("\u202e \u009b"));
  EXPECT_THAT(turning, Not(HasSubstr("\u202e")));
  EXPECT_THAT(turning, Not(HasSubstr("\u009b")));
}

// A chain of n operators that each also read the parameter.
std::vector<Drawing> chain(size_t n) {
  std::vector<Drawing> drawings = drawing_of("");
  std::vector<GraphNode>& nodes = drawings[0].nodes;
  nodes[1].sources.clear();
  while (nodes.size() <= n) {
    nodes.push_back(nodes[1]);
    nodes.back().inputs = {0, nodes.size() - 2};
  }
  return drawings;
}

TEST(Picture, ALongEdgeIsNamedAtBothEnds) {
  const std::string svg = to_svg(chain(20));
  EXPECT_THAT(svg, HasSubstr("<g class=\"cut\" data-to=\"18\">"));
  EXPECT_THAT(svg, HasSubstr("<g class=\"cut\" data-to=\"0\">"));
  EXPECT_THAT(svg, HasSubstr(">n0 x</text>"));
  EXPECT_THAT(to_dot(chain(20)), HasSubstr("n0 -> n20;"));
}

TEST(Picture, IsInProportionToTheGraph) {
  EXPECT_LE(to_svg(chain(800)).size(), to_svg(chain(400)).size() * 23 / 10);
}

TEST(Picture, LongNamesAreCutInTheTextAndWholeInTheTitle) {
  const std::string name(100, 'a');
  const std::string svg = to_svg(drawing_of(name));
  EXPECT_THAT(svg, HasSubstr("from " + name + "</title>"));
  EXPECT_THAT(svg, HasSubstr(">" + std::string(43, 'a') + "…</text>"));
}

TEST(Picture, MarkupIsEscapedAndUtf8Kept) {
  EXPECT_EQ(escape_markup("<a href='x'>&\"é€😀"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;é€😀");
  EXPECT_EQ(escape_markup("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(PictureOfCode, HasANodeForEachCall) {
  const vm::Unit unit = vm::assemble(R"(
packed $host.f
packed $host.g
const "w" = tensor[2; i64] {1, 2}
func @main(x: any) -> any {
  %1 = new_tensor cpu:0, f32, 2, 3
  _ = call_packed $host.f, %0, #0, %1
  _ = call_packed $host.g, %0, %1
  %2 = call @helper, %1
  ret %2
}
func @helper(x: any) -> any {
  ret %0
}
)");
  const std::vector<GraphNode> nodes = graph_of_code(unit, unit.functions[0]);
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[1].label, "host.f");
  EXPECT_EQ(nodes[1].type, "tensor[2, 3; f32]");
  EXPECT_THAT(nodes[1].weights, ElementsAre("w"));
  EXPECT_THAT(nodes[1].inputs, ElementsAre(0));
  // In place, since it gets no new tensor.
  EXPECT_EQ(nodes[2].type, "tensor[2, 3; f32]");
  EXPECT_THAT(nodes[2].inputs, ElementsAre(0, 1));
  EXPECT_EQ(nodes[3].label, "@helper");
  EXPECT_THAT(nodes[3].inputs, ElementsAre(2));
  EXPECT_THAT(nodes[4].inputs, ElementsAre(3));
}

TEST(PictureOfCode, ShowsAConstantResult) {
  const vm::Unit unit = vm::assemble(R"(
const "w" = tensor[2; i64] {1, 2}
func @main() -> any {
  ret #0
}
)");
  EXPECT_THAT(graph_of_code(unit, unit.functions[0]).at(0).weights, ElementsAre("w"));
}

// Each tuple holds the one before it twice.
TEST(PictureOfCode, BundlesInBundlesDoNotMultiplyEdges) {
  std::string code = "packed $host.f\nfunc @main(x: any) -> any {\n";
  for (int i = 0; i < 100; ++i) {
    code += "  %1 = call_packed $host.f, %0\n  %0 = alloc_tuple %0, %0, %1\n";
  }
  const vm::Unit unit = vm::assemble(code + "  ret %0\n}\n");
  size_t edges = 0;
  for (const GraphNode& node : graph_of_code(unit, unit.functions[0])) edges += node.inputs.size();
  EXPECT_LT(edges, 2000u);
}

}  // namespace
}  // namespace tenon::report
