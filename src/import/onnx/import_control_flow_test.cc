#include "import/onnx/import_testing.h"

namespace tenon::onnx {
namespace {

using ImportControlFlow = ImportModel;

TEST_F(ImportControlFlow, IfBecomesAnIf) {
  M m;
  m.input("c", {}, 9).input("x", {4});
  m.node("If", {"c"}, {"y"},
         {M::body("then_branch", graph_of({M::make_node("Relu", {"x"}, {"a"})}, "a")),
          M::body("else_branch", graph_of({M::make_node("Exp", {"x"}, {"b"})}, "b"))});
  m.output("y");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%c: tensor[bool], %x: tensor[4; f32]) -> tensor[4; f32] attrs(results=["y"]) {
  %0: tensor[4; f32] = if %c {
    %1: tensor[4; f32] = relu(%x)
    %1
  } else {
    %2: tensor[4; f32] = exp(%x)
    %2
  }
  %0
}
)");
}

TEST_F(ImportControlFlow, AKnownConditionTakesItsBranchAlone) {
  M m;
  m.input("x", {4}).ints("one", {1});
  m.node("If", {"one"}, {"y"},
         {M::body("then_branch", graph_of({M::make_node("Relu", {"x"}, {"a"})}, "a")),
          M::body("else_branch", graph_of({M::make_node("NoSuch", {"x"}, {"b"})}, "b"))});
  m.output("y");
  EXPECT_EQ(import_model(m.model).module->functions.at("main")->body->bindings.size(), 1u);
}

// The condition with which PyTorch's exporter tests whether a tensor has a batch.
TEST_F(ImportControlFlow, AConditionOnARankTakesItsBranchAlone) {
  M m;
  m.input("x", {"n", 4}).ints("two", {2}, true);
  m.node("Shape", {"x"}, {"shape"}).node("Size", {"shape"}, {"rank"});
  m.node("Equal", {"rank", "two"}, {"is_two"}).node("Not", {"is_two"}, {"other"});
  m.node("If", {"other"}, {"y"},
         {M::body("then_branch", graph_of({M::make_node("NoSuch", {"x"}, {"a"})}, "a")),
          M::body("else_branch", graph_of({M::make_node("Relu", {"x"}, {"b"})}, "b"))});
  m.output("y");
  EXPECT_THAT(text(m), testing::EndsWith("= relu(%x)\n  %2\n}\n"));
}

TEST_F(ImportControlFlow, ComparisonsOfKnownNumbersAreDecided) {
  struct Case {
    const char* op;
    bool of_two_and_three, of_three_and_two, of_twice_two;
  };
  for (const Case& c : {Case{"Equal", false, false, true}, Case{"Less", true, false, false},
                        Case{"LessOrEqual", true, false, true}, Case{"Greater", false, true, false},
                        Case{"GreaterOrEqual", false, true, true}}) {
    auto decides = [&](int64_t a, int64_t b) {
      M m;
      m.input("x", {4}).ints("a", {a}).ints("b", {b});
      m.node(c.op, {"a", "b"}, {"c"}).node("And", {"c", "c"}, {"d"}).node("Or", {"c", "d"}, {"e"});
      m.node("Xor", {"e", "e"}, {"f"}).node("Xor", {"e", "f"}, {"g"});
      m.node("If", {"g"}, {"y"},
             {M::body("then_branch", graph_of({M::make_node("Relu", {"x"}, {"a1"})}, "a1")),
              M::body("else_branch", graph_of({M::make_node("Exp", {"x"}, {"b1"})}, "b1"))});
      m.output("y");
      const std::string found = text(m);
      EXPECT_EQ(found.find("if "), std::string::npos) << found;
      return found.find("relu") != std::string::npos;
    };
    EXPECT_EQ(decides(2, 3), c.of_two_and_three) << c.op;
    EXPECT_EQ(decides(3, 2), c.of_three_and_two) << c.op;
    EXPECT_EQ(decides(2, 2), c.of_twice_two) << c.op;
  }
}

TEST_F(ImportControlFlow, AComparisonOfOneKnownNumberIsRefused) {
  M m;
  m.ints("one", {1}).node("Less", {"one"}, {"y"}).output("y");
  EXPECT_THAT(error_of(m).render(),
              testing::HasSubstr("'less' is called with the wrong number of operands"));
}

TEST_F(ImportControlFlow, ARecurrencesStartMayNameItsBatchAnew) {
  M m;
  m.input("x", {3, "n", 2}).input("w", {1, 4, 2}).input("r", {1, 4, 4}).input("h", {1, "m", 4});
  m.node("RNN", {"x", "w", "r", "", "", "h"}, {"y"}).output("y");
  const std::string found = text(m);
  EXPECT_THAT(found, testing::HasSubstr("tensor[3, 1, n, 4; f32]"));
  EXPECT_THAT(found, testing::HasSubstr("match_shape("));
}

TEST_F(ImportControlFlow, NodesOfBranchesAreListedToo) {
  M m;
  m.input("c", {}, 9).input("x", {4});
  m.node("If", {"c"}, {"y"},
         {M::body("then_branch", graph_of({M::make_node("NoSuchA", {"x"}, {"a"})}, "a")),
          M::body("else_branch", graph_of({M::make_node("NoSuchB", {"x"}, {"b"})}, "b"))});
  m.output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx: 2 of 3 nodes cannot be imported (opset 17)
  node      operator  reason
  /NoSuchA  NoSuchA   not implemented
  /NoSuchB  NoSuchB   not implemented
  help: `tenon ops` lists what is supported; nothing was written)");
}

Graph loop_body() {
  Graph g = graph_of({M::make_node("Identity", {"go"}, {"go_out"}),
                      M::make_node("Concat", {"v", "v"}, {"v_out"}, {M::integer("axis", 0)})},
                     "go_out");
  Value v;
  v.name = "v_out";
  g.outputs.push_back(v);
  g.inputs = {M::value("i", 7, {}), M::value("go", 9, {}), M::value("v", 1, {"k"})};
  return g;
}

TEST_F(ImportControlFlow, LoopVariablesMayGrow) {
  M m;
  m.input("n", {}, 7).input("x", {4});
  m.node("Loop", {"n", "", "x"}, {"y"}, {M::body("body", loop_body())}).output("y");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%n: tensor[i64], %x: tensor[4; f32]) -> tensor[rank=1; f32] attrs(results=["y"]) {
  %0: (tensor[i64], tensor[rank=1; f32]) = loop (%i: tensor[i64] = tensor[i64]{0}, %state_0: tensor[rank=1; f32] = %x) while {
    %1: tensor[bool] = less(%i, %n)
    %1
  } {
    %2: tensor[d_0; f32] = match_shape(%state_0, [d_0])
    %3: tensor[2*d_0; f32] = concat(%2, %2, axis=0)
    %4: tensor[i64] = add(%i, tensor[i64]{1})
    %5: (tensor[i64], tensor[2*d_0; f32]) = (%4, %3)
    %5
  }
  %6: tensor[rank=1; f32] = %0.1
  %7: tensor[d_1; f32] = match_shape(%6, [d_1])
  %7
}
)");
}

TEST_F(ImportControlFlow, InnerGraphsWithOtherInputsAreRefused) {
  M m;
  Graph body = loop_body();
  body.inputs.pop_back();
  m.input("n", {}, 7).input("x", {4});
  m.node("Loop", {"n", "", "x"}, {"y"}, {M::body("body", body)}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: /Loop: m.onnx breaks ONNX's rules
  where     node '/Loop' (Loop) of m.onnx
  operands  n: tensor[i64], x: tensor[4; f32]
  found     an inner graph of '/Loop' with 2 inputs
  expected  3
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
}

TEST_F(ImportControlFlow, InnerGraphsThatMakeNoResultAreRefused) {
  M m;
  m.input("c", {}, 9).input("x", {4});
  m.node("If", {"c"}, {"y"},
         {M::body("then_branch", graph_of({}, "lost")), M::body("else_branch", graph_of({}, "x"))});
  m.output("y");
  EXPECT_EQ(error_of(m).rows()[2].text,
            "output 'lost' of an inner graph of '/If', which nothing defines");
}

TEST_F(ImportControlFlow, ShortConstantLoopsAreUnrolled) {
  M m;
  m.ints("two", {2}).input("x", {4});
  m.node("Loop", {"two", "", "x"}, {"y"}, {M::body("body", loop_body())}).output("y");
  ImportResult r = import_model(m.model);
  EXPECT_EQ(to_text(graph::type_of(r.module->functions.at("main")->body->result)),
            "tensor[16; f32]");
}

TEST_F(ImportControlFlow, NodesCountOnceHoweverOftenTheyAreBuilt) {
  M m;
  m.input("x", {4}).ints("two", {2});
  m.node("Loop", {"two", "", "x"}, {"y"}, {M::body("body", loop_body())})
      .node("NoSuch", {"y"}, {"z"});
  m.output("z");
  ModelReport r = inspect_model(m.model);
  EXPECT_EQ(r.nodes, 4);
  EXPECT_EQ(r.operators, (std::map<std::string, int64_t>{
                             {"Concat", 1}, {"Identity", 1}, {"Loop", 1}, {"NoSuch", 1}}));
  EXPECT_EQ(error_of(m).message(), "m.onnx: 1 of 4 nodes cannot be imported (opset 17)");
}

}  // namespace
}  // namespace tenon::onnx
