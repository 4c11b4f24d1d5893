#include "import/onnx/import_testing.h"

namespace tenon::onnx {
namespace {

using ImportFunctions = ImportModel;

ModelFunction scaled_relu() {
  ModelFunction f;
  f.domain = "my";
  f.name = "ScaledRelu";
  f.inputs = {"a", "b"};
  f.outputs = {"r"};
  f.attributes = {"slope"};
  f.opsets[""] = 17;
  f.nodes = {M::make_node("LeakyRelu", {"a"}, {"t"}, {M::reference("alpha", "slope")}),
             M::make_node("Clip", {"t", "b"}, {"r"})};
  return f;
}

TEST_F(ImportFunctions, FunctionsExpandInPlaceWithTheirAttributes) {
  M m;
  m.model.functions.push_back(scaled_relu());
  m.input("x", {4}).node("ScaledRelu", {"x"}, {"y"}, {M::number("slope", 0.5)}, "my").output("y");
  EXPECT_EQ(text(m), R"(fn @main(%x: tensor[4; f32]) -> tensor[4; f32] attrs(results=["y"]) {
  %0: tensor[4; f32] = mul(%x, tensor[f32]{0.5})
  %1: tensor[4; bool] = less(%x, tensor[f32]{0.0})
  %2: tensor[4; f32] = where(%1, %0, %x)
  %2
}
)");
  auto main = import_model(m.model).module->functions.at("main");
  EXPECT_EQ(to_text(main->body->bindings[0]->span), "/ScaledRelu//LeakyRelu");
}

TEST_F(ImportFunctions, FunctionsThatCallThemselvesAreRefused) {
  M m;
  ModelFunction f = scaled_relu();
  f.nodes = {M::make_node("ScaledRelu", {"a"}, {"r"}, {}, "my")};
  m.model.functions.push_back(f);
  m.input("x", {4}).node("ScaledRelu", {"x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx nests functions too deeply
  where     function 'ScaledRelu'
  found     functions that call each other recursively or too deeply
  expected  at most 50 levels)");
}

TEST_F(ImportFunctions, FunctionsThatExpandToTooManyNodesAreRefused) {
  M m;
  for (int i = 0; i < 40; ++i) {
    ModelFunction f;
    f.domain = "my";
    f.name = cat("f", i);
    f.inputs = {"a"};
    f.outputs = {"r"};
    f.nodes = {M::make_node(cat("f", i + 1), {"a"}, {"t"}, {}, "my"),
               M::make_node(cat("f", i + 1), {"t"}, {"r"}, {}, "my")};
    m.model.functions.push_back(f);
  }
  m.input("x", {4}).node("f0", {"x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx is too large
  found     more than 1000000 nodes once functions are expanded, loops unrolled and their bodies built
  expected  at most 1000000)");
  EXPECT_EQ(inspect_model(m.model).nodes, (int64_t{1} << 41) - 1);
}

TEST_F(ImportFunctions, AnOperandThatIsLeftOutIsNoOutput) {
  M m;
  ModelFunction f;
  f.domain = "my";
  f.name = "Second";
  f.inputs = {"a", "b"};
  f.outputs = {"b"};
  m.model.functions.push_back(f);
  m.input("x", {4}).node("Second", {"x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx breaks ONNX's rules
  found     result 'b' of function 'Second', an operand that a call leaves out
  expected  a value for each result
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");

  Graph branch;
  branch.outputs.push_back(M::value("b", 1, {4}));
  f.inputs.push_back("c");
  f.outputs = {"r"};
  f.nodes = {M::make_node("If", {"c"}, {"r"},
                          {M::body("then_branch", branch), M::body("else_branch", branch)})};
  M inner;
  inner.model.functions.push_back(f);
  inner.input("x", {4}).input("c", {}, 9);
  inner.node("Second", {"x", "", "c"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(inner).kind(), ErrorKind::Usage);
}

TEST_F(ImportFunctions, CallsOfFunctionsThatDoNotFitAreRefused) {
  M m;
  m.model.functions.push_back(scaled_relu());
  m.input("x", {4}).node("ScaledRelu", {"x", "x", "x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: /ScaledRelu: m.onnx breaks ONNX's rules
  where     node '/ScaledRelu' (my:ScaledRelu) of m.onnx
  found     3 operands
  expected  at most 2, as the function 'ScaledRelu' has
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
  M n;
  n.model.functions.push_back(scaled_relu());
  n.input("x", {4}).node("ScaledRelu", {"x"}, {"y", "z"}, {}, "my").output("z");
  EXPECT_EQ(error_of(n).render(), R"(error: /ScaledRelu: m.onnx breaks ONNX's rules
  where     node '/ScaledRelu' (my:ScaledRelu) of m.onnx
  found     2 outputs
  expected  at most 1, as the function 'ScaledRelu' has
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
}

TEST_F(ImportFunctions, FunctionsThatMakeNoResultAreRefused) {
  M m;
  m.model.functions.push_back(scaled_relu());
  m.model.functions[0].outputs = {"lost"};
  m.input("x", {4}).node("ScaledRelu", {"x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx breaks ONNX's rules
  found     output 'lost' of the function 'ScaledRelu', which nothing defines
  expected  the name of an input or of a node's output
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
}

TEST_F(ImportFunctions, NodesOfFunctionsCountPerCall) {
  M m;
  m.model.functions.push_back(scaled_relu());
  m.input("x", {4});
  m.node("ScaledRelu", {"x"}, {"y"}, {M::number("slope", 0.5)}, "my");
  m.node("ScaledRelu", {"y"}, {"z"}, {M::number("slope", 0.5)}, "my").output("z");
  ModelReport r = inspect_model(m.model);
  EXPECT_EQ(r.problem, "");
  EXPECT_EQ(r.nodes, 6);
  EXPECT_EQ(r.operators, (std::map<std::string, int64_t>{{"Clip", 2}, {"LeakyRelu", 2}}));
}

}  // namespace
}  // namespace tenon::onnx
