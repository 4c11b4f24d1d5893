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

TEST(Picture, LeavesOutNodesBeyondItsLimitAndSaysSo) {
  std::vector<Drawing> drawings = chain(kMostNodes + 4);  // and the parameter
  drawings.push_back(drawing_of("")[0]);
  drawings.back().title = "second";
  const Picture picture(std::move(drawings));
  EXPECT_EQ(picture.drawings()[0].nodes.size(), kMostNodes);
  EXPECT_EQ(picture.drawings()[1].nodes.size(), 0u);
  const std::string first = cat("main: 5 of ", kMostNodes + 5, " nodes left out");
  for (const std::string& text : {to_svg(picture), to_dot(picture)}) {
    EXPECT_THAT(text, HasSubstr(first));
    EXPECT_THAT(text, HasSubstr("second: 2 of 2 nodes left out"));
  }
}

TEST(Picture, ItsTextIsBounded) {
  std::vector<Drawing> drawings = chain(5000);
  for (GraphNode& node : drawings[0].nodes) node.weights.assign(16, std::string(250, '<'));
  const std::string svg = to_svg(drawings);
  EXPECT_THAT(svg, HasSubstr("of 5001 nodes left out"));
  EXPECT_LT(svg.size(), 5 * kMostText);  // each `<` takes four bytes
}

TEST(Picture, ItsEdgesAreBounded) {
  std::vector<Drawing> drawings = chain(400);
  for (size_t i = 0; i < 400; ++i) {
    std::vector<size_t>& inputs = drawings[0].nodes[i].inputs;
    for (inputs.clear(); inputs.size() < i;) inputs.push_back(inputs.size());
  }
  size_t edges = 0;
  const Picture picture(std::move(drawings));
  for (const GraphNode& node : picture.drawings()[0].nodes) edges += node.inputs.size();
  EXPECT_LE(edges, kMostEdges);
  EXPECT_GT(picture.drawings()[0].left_out, 0u);
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

// The nodes of the first function.
std::vector<GraphNode> nodes_of(const vm::Unit& unit) {
  return picture_of_code(unit).drawings().at(0).nodes;
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
  const std::vector<GraphNode> nodes = nodes_of(unit);
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
  EXPECT_THAT(nodes_of(unit).at(0).weights, ElementsAre("w"));
}

// Calls share long names, as no program but a hostile one has.
TEST(PictureOfCode, SharedNamesDoNotMultiplyItsText) {
  std::string code = "span \"\" 0 0";
  for (int i = 0; i < 20; ++i) code += cat(" \"", i, std::string(1000, 'n'), "\"");
  code += cat("\npacked $host.f\nconst \"", std::string(1000, 'w'), "\" = 1\n");
  code += "func @main(x: any) -> any {\n  at 0\n";
  for (int i = 0; i < 5000; ++i) code += "  %0 = call_packed $host.f, %0, #0\n";
  const Picture picture = picture_of_code(vm::assemble(code + "  ret %0\n}\n"));
  const Drawing& drawing = picture.drawings().at(0);
  EXPECT_EQ(drawing.nodes.size() + drawing.left_out, 5002u);
  EXPECT_GT(drawing.left_out, 0u);
  EXPECT_EQ(drawing.nodes.at(1).sources.back(), "5 more");
  EXPECT_LT(to_svg(picture).size(), 4 * kMostText);
}

// Each tuple holds the one before it twice.
TEST(PictureOfCode, BundlesInBundlesDoNotMultiplyEdges) {
  std::string code = "packed $host.f\nfunc @main(x: any) -> any {\n";
  for (int i = 0; i < 100; ++i) {
    code += "  %1 = call_packed $host.f, %0\n  %0 = alloc_tuple %0, %0, %1\n";
  }
  const vm::Unit unit = vm::assemble(code + "  ret %0\n}\n");
  size_t edges = 0;
  for (const GraphNode& node : nodes_of(unit)) edges += node.inputs.size();
  EXPECT_LT(edges, 2000u);
}

}  // namespace
}  // namespace tenon::report
