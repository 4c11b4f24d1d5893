#include "import/onnx/import_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "import/onnx/model_maker.h"
#include "import/onnx/op_table.h"
#include "import/onnx/read_model.h"
#include "onnx.pb.h"

namespace tenon::onnx {
namespace {

using M = ModelMaker;

class ImportModel : public testing::Test {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }
};

std::string text(const ModelMaker& m, const ImportOptions& options = {}) {
  return graph::to_text(import_model(m.model, options).module);
}

Error error_of(const ModelMaker& m, const ImportOptions& options = {}) {
  try {
    import_model(m.model, options);
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::Internal, "nothing was thrown");
}

TEST_F(ImportModel, NodesBecomeCallsAndNamesSpans) {
  M m;
  m.input("x", {"batch", 4}).node("Relu", {"x"}, {"y"}).node("Exp", {"y"}, {"z"}).output("z");
  EXPECT_EQ(text(m),
            R"(fn @main(%x: tensor[batch, 4; f32]) -> tensor[batch, 4; f32] attrs(results=["z"]) {
  %0: tensor[batch, 4; f32] = relu(%x)
  %1: tensor[batch, 4; f32] = exp(%0)
  %1
}
)");
  ImportResult r = import_model(m.model);
  EXPECT_EQ(r.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(r.outputs, std::vector<std::string>{"z"});
  auto main = r.module->functions.at("main");
  EXPECT_EQ(to_text(main->body->bindings[0]->span), "/Relu");
}

TEST_F(ImportModel, OneSymbolPerNameAndOnePerUnknownSize) {
  M m;
  m.input("a:0", {"batch size", ""}).input("b", {"batch size", ""}).input("2c", {"batch_size"});
  m.node("Add", {"a:0", "b"}, {"y"}).output("y").output("2c");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%"a:0": tensor[batch_size, a_0_1; f32], %b: tensor[batch_size, b_1; f32], %2c: tensor[batch_size_0; f32]) -> (tensor[batch_size, bcast(a_0_1, b_1); f32], tensor[batch_size_0; f32]) attrs(results=["y", "2c"]) {
  check a_0_1 ~ b_1, "add: sizes of axis -1 to broadcast"
  %0: tensor[batch_size, bcast(a_0_1, b_1); f32] = add(%"a:0", %b)
  %1: (tensor[batch_size, bcast(a_0_1, b_1); f32], tensor[batch_size_0; f32]) = (%0, %2c)
  %1
}
)");
}

TEST_F(ImportModel, SizesForSymbolsAndShapesForInputs) {
  M m;
  m.input("x", {"n", "m", ""}).node("Relu", {"x"}, {"y"}).output("y");
  ImportOptions options;
  options.dims["n"] = 2;
  options.shapes["x"] = {-1, -1, 5};
  EXPECT_EQ(text(m, options),
            R"(fn @main(%x: tensor[2, m, 5; f32]) -> tensor[2, m, 5; f32] attrs(results=["y"]) {
  %0: tensor[2, m, 5; f32] = relu(%x)
  %0
}
)");
  options.shapes["x"] = {1};
  EXPECT_EQ(error_of(m, options).kind(), ErrorKind::Usage);
  ImportOptions other;
  other.shapes["z"] = {1};
  EXPECT_EQ(error_of(m, other).render(), R"(error: m.onnx has no input 'z'
  found     a shape for 'z'
  expected  one of x)");
}

TEST_F(ImportModel, SizesForUnnamedDimensions) {
  M m;
  m.input("x", {"", 4}).node("Relu", {"x"}, {"y"}).output("y");
  ImportOptions options;
  options.dims["x_0"] = 3;
  EXPECT_EQ(inspect_model(m.model, options).inputs[0].type, "tensor[3, 4; f32]");
}

TEST_F(ImportModel, SizesThatNoInputHasAreRefused) {
  M m;
  m.input("x", {"n", ""}).node("Relu", {"x"}, {"y"}).output("y");
  ImportOptions options;
  options.dims["batch"] = 3;
  EXPECT_EQ(error_of(m, options).render(), R"(error: m.onnx has no size 'batch'
  found     a size for 'batch'
  expected  one of n, x_1)");
}

TEST_F(ImportModel, ListsEveryNodeThatCannotBeImported) {
  M m;
  m.input("x", {4}).node("Relu", {"x"}, {"y"}).node("Nothing", {"y"}, {"z"}, {}, "my.domain");
  m.node("NoSuchOperator", {"x"}, {"u"}).node("Relu", {"z"}, {"v"});
  m.node("Relu", {"x"}, {"w"}, {M::integer("inplace", 1)});
  m.output("v").output("w").output("u");
  Error e = error_of(m);
  EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
  EXPECT_EQ(e.exit_code(), 3);
  EXPECT_EQ(e.render(), R"(error: m.onnx: 3 of 5 nodes cannot be imported (opset 17)
  node             operator           reason
  /Nothing         my.domain:Nothing  not implemented
  /NoSuchOperator  NoSuchOperator     not implemented
  /Relu            Relu               attribute 'inplace' not implemented
  help: `tenon ops` lists what is supported; nothing was written)");
}

TEST_F(ImportModel, ElementTypesAreRefusedByName) {
  M m;
  m.input("x", {4}, 16).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(),
            R"(error: m.onnx: 1 of its inputs and initializers cannot be imported (opset 17)
  node  operator  reason
  x     (input)   bfloat16 is not implemented
  help: `tenon ops` lists what is supported; nothing was written)");
}

TEST_F(ImportModel, LaterOpsetsAreRefused) {
  M m(99);
  m.input("x", {4}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx uses operators of an unknown version
  found     opset 99
  expected  1 to 28
  help: export it for an earlier opset; `onnx.version_converter` may convert it)");
}

TEST_F(ImportModel, NodesMayStandInAnyOrder) {
  M m;
  m.input("x", {4}).node("Exp", {"y"}, {"z"}).node("Relu", {"x"}, {"y"}).output("z");
  EXPECT_EQ(import_model(m.model).module->functions.at("main")->body->bindings.size(), 2u);
}

TEST_F(ImportModel, CyclesAreRefused) {
  M m;
  m.input("x", {4}).node("Add", {"x", "z"}, {"y"}).node("Relu", {"y"}, {"z"}).output("z");
  EXPECT_EQ(error_of(m).render(), R"(error: /Add: the graph's nodes form a cycle
  where     node '/Add' (Add) of m.onnx
  found     it needs its own result, or that of a node that does
  expected  nodes that need only what others make
  help: export the model again, or correct it)");
}

TEST_F(ImportModel, NamesThatNothingMakesAreRefused) {
  M m;
  m.input("x", {4}).node("Add", {"x", "ghost"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: /Add: m.onnx breaks ONNX's rules
  where     node '/Add' (Add) of m.onnx
  found     operand 'ghost', which nothing makes
  expected  the name of an input, an initializer or a node's output
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
  M out;
  out.input("x", {4}).node("Relu", {"x"}, {"y"}).output("ghost");
  EXPECT_EQ(error_of(out).kind(), ErrorKind::Usage);
}

TEST_F(ImportModel, NamesMadeTwiceAreRefused) {
  M m;
  m.input("x", {4}).node("Relu", {"x"}, {"y"}).node("Exp", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: /Exp: m.onnx breaks ONNX's rules
  where     node '/Exp' (Exp) of m.onnx
  found     output 'y', which something else makes
  expected  one definition of each name
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
}

TEST_F(ImportModel, ShapesThatDisagreeNameTheNode) {
  M m;
  m.input("x", {2, 3}).input("w", {4, 5}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  Error e = error_of(m);
  EXPECT_EQ(e.kind(), ErrorKind::Usage);
  EXPECT_EQ(to_text(e.span()), "/MatMul");
}

TEST_F(ImportModel, RanksThatTheOperatorDoesNotHaveAreRefused) {
  M m;
  m.input("scores", {2, 3}).input("target", {}, 7);
  m.node("SoftmaxCrossEntropyLoss", {"scores", "target"}, {"loss"}).output("loss");
  EXPECT_EQ(error_of(m).kind(), ErrorKind::Usage);
  M conv;
  conv.input("x", {1, 3, 8, 8}).input("w", {4}).node("Conv", {"x", "w"}, {"y"}).output("y");
  EXPECT_EQ(error_of(conv).kind(), ErrorKind::Usage);
}

TEST_F(ImportModel, TensorsWithMoreBytesThan64BitsCountNameTheNode) {
  M m;
  m.input("x", {1 << 30, 1}).ints("shape", {1 << 30, 1 << 30, 8});
  m.node("Expand", {"x", "shape"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: /Expand: a tensor has more bytes than 64 bits count
  where     node '/Expand' (Expand) of m.onnx
  operands  x: tensor[1073741824, 1; f32], shape: tensor[3; i64] = [1073741824, 1073741824, 8]
  found     tensor[1073741824, 1073741824, 8; f32]
  expected  sizes whose product with the element's size is below 2^63)");
  M input;
  input.input("x", {1 << 30, 1 << 30, 8}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(input).message(), "a tensor has more bytes than 64 bits count");
  M empty;
  empty.input("x", {1 << 30, 1 << 30, 8, 0}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_NO_THROW(text(empty));
}

// ---- model functions ----

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

TEST_F(ImportModel, FunctionsExpandInPlaceWithTheirAttributes) {
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

TEST_F(ImportModel, FunctionsThatCallThemselvesAreRefused) {
  M m;
  ModelFunction f = scaled_relu();
  f.nodes = {M::make_node("ScaledRelu", {"a"}, {"r"}, {}, "my")};
  m.model.functions.push_back(f);
  m.input("x", {4}).node("ScaledRelu", {"x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx nests functions too deeply
  where     function 'ScaledRelu'
  found     functions that call each other without end, or more deeply than that
  expected  at most 50 levels)");
}

TEST_F(ImportModel, FunctionsThatExpandToTooManyNodesAreRefused) {
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

TEST_F(ImportModel, AnOperandThatIsLeftOutIsNoOutput) {
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

TEST_F(ImportModel, CallsOfFunctionsThatDoNotFitAreRefused) {
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

TEST_F(ImportModel, FunctionsThatMakeNoResultAreRefused) {
  M m;
  m.model.functions.push_back(scaled_relu());
  m.model.functions[0].outputs = {"lost"};
  m.input("x", {4}).node("ScaledRelu", {"x"}, {"y"}, {}, "my").output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx breaks ONNX's rules
  found     output 'lost' of the function 'ScaledRelu', which nothing makes
  expected  the name of an input or of a node's output
  help: export the model again, or correct it; `onnx.checker` lists what is wrong)");
}

// ---- element types and kinds of values ----

TEST_F(ImportModel, InputsThatAreNoTensorsAreRefusedByName) {
  const std::pair<ValueType::Kind, const char*> kinds[] = {
      {ValueType::kNone, "an input without a type"},
      {ValueType::kSequence, "sequences are not implemented"},
      {ValueType::kMap, "maps are not implemented"},
      {ValueType::kOptional, "optional values are not implemented"},
      {ValueType::kSparse, "sparse tensors are not implemented"},
      {ValueType::kOpaque, "opaque values are not implemented"}};
  for (const auto& [kind, reason] : kinds) {
    M m;
    m.input("x", {4}).node("Relu", {"x"}, {"y"}).output("y");
    m.model.graph.inputs[0].type.kind = kind;
    ModelReport r = inspect_model(m.model);
    ASSERT_EQ(r.unsupported.size(), 1u) << reason;
    EXPECT_EQ(r.unsupported[0].reason, reason);
  }
}

TEST_F(ImportModel, SparseInitializersAreRefused) {
  M m;
  m.input("x", {4}).node("Add", {"x", "w"}, {"y"}).output("y");
  m.model.graph.sparse_initializers = {"w"};
  ModelReport r = inspect_model(m.model);
  ASSERT_EQ(r.unsupported.size(), 1u);
  EXPECT_EQ(r.unsupported[0].node, "w");
  EXPECT_EQ(r.unsupported[0].reason, "sparse tensors are not implemented");
}

// ---- shapes as values ----

TEST_F(ImportModel, ReshapeResolvesZeroAndMinusOneSymbolically) {
  M m;
  m.input("x", {"n", 6, "s"}).ints("shape", {0, -1, 3});
  m.node("Reshape", {"x", "shape"}, {"y"}).output("y");
  EXPECT_EQ(text(m),
            R"(fn @main(%x: tensor[n, 6, s; f32]) -> tensor[n, 2*s, 3; f32] attrs(results=["y"]) {
  %0: tensor[n, 2*s, 3; f32] = reshape(%x, shape=[n, 2*s, 3])
  %0
}
)");
}

TEST_F(ImportModel, ShapeArithmeticStaysProvable) {
  // Split heads: x [b, s, 12] to [b, s, 3, 4], with b and s taken from the shape of x.
  M m;
  m.input("x", {"b", "s", 12}).ints("zero", {0}).ints("one", {1}).ints("heads", {3, 4});
  m.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"b"});
  m.node("Gather", {"shape", "one"}, {"s"})
      .node("Concat", {"b", "s", "heads"}, {"to"}, {M::integer("axis", 0)});
  m.node("Reshape", {"x", "to"}, {"y"}).output("y");
  ImportResult r = import_model(m.model);
  auto type = graph::type_of(r.module->functions.at("main")->body->result);
  EXPECT_EQ(to_text(type), "tensor[b, s, 3, 4; f32]");
}

TEST_F(ImportModel, SliceClampsSymbolically) {
  M m;
  m.input("x", {"n", 5}).ints("starts", {-3, 1}).ints("ends", {INT64_MAX, 100});
  m.node("Slice", {"x", "starts", "ends"}, {"y"}).output("y");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%x: tensor[n, 5; f32]) -> tensor[n - max(0, n - 3), 4; f32] attrs(results=["y"]) {
  %0: tensor[n - max(0, n - 3), 4; f32] = slice(%x, starts=[max(0, n - 3), 1], sizes=[n - max(0, n - 3), 4], steps=[1, 1])
  %0
}
)");
}

TEST_F(ImportModel, ShapesFromInputsAreMatched) {
  M m;
  m.input("x", {"n", 4}).input("shape", {2}, 7);
  m.node("Reshape", {"x", "shape"}, {"y"}).node("Relu", {"y"}, {"z"}).output("z");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%x: tensor[n, 4; f32], %shape: tensor[2; i64]) -> tensor[rank=2; f32] attrs(results=["z"]) {
  %0: tensor[2; i64] = [n, 4] = shape_of(%x)
  %1: tensor[2; i64] = reshape_dims(%shape, %0)
  %2: tensor[2; i64] = [d_0, d_1] = match_elements(%1, [d_0, d_1])
  check 4*n == d_0*d_1, "reshape: number of elements of 'x' and of 'shape'"
  %3: tensor[d_0, d_1; f32] = reshape(%x, shape=[d_0, d_1])
  %4: tensor[d_0, d_1; f32] = relu(%3)
  %4
}
)");
}

// ---- numbers that sizes are made of ----

template <class T>
TensorData constant_of(const std::string& name, DataType dtype, const std::vector<T>& values,
                       std::vector<int64_t> shape) {
  TensorData t;
  t.name = name;
  t.dims = std::move(shape);
  t.tensor = Tensor::copy_of(std::span<const int64_t>(t.dims), dtype, std::span<const T>(values));
  return t;
}

M one_hot(const TensorData& depth) {
  M m;
  m.input("x", {4}, 7).ints("values", {0, 1});
  m.model.graph.initializers.push_back(depth);
  m.node("OneHot", {"x", depth.name, "values"}, {"y"}).output("y");
  return m;
}

M resize(int64_t size, const TensorData& scales) {
  M m;
  m.input("x", {"n"}).node("Resize", {"x", "", scales.name}, {"y"}).output("y");
  m.model.graph.inputs[0].type.shape[0] = {size, ""};
  m.model.graph.initializers.push_back(scales);
  return m;
}

TEST_F(ImportModel, SizesThatNoIntegerHoldsAreRefused) {
  for (float depth : {1e30F, -1e30F, NAN}) {
    Error e = error_of(one_hot(constant_of<float>("depth", f32, {depth}, {})));
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_NE(e.render().find(cat("  found     a depth of ", static_cast<double>(depth),
                                  "\n  expected  a number that 64 bits hold\n")),
              std::string::npos)
        << e.render();
  }
  Error e = error_of(resize(int64_t{1} << 60, constant_of<float>("scales", f32, {1e6F}, {1})));
  EXPECT_EQ(e.render(), R"(error: /Resize: the Resize node breaks ONNX's rules
  where     node '/Resize' (Resize) of m.onnx
  operands  x: tensor[1152921504606846976; f32], scales: tensor[1; f32]
  found     a size of 1.152921504606847e+24
  expected  a number that 64 bits hold
  help: export the model again, or correct the node)");
}

TEST_F(ImportModel, IntegersOfAllTypesAreExact) {
  int64_t odd = (int64_t{1} << 53) + 1;
  M m = one_hot(constant_of<uint64_t>("depth", u64, {static_cast<uint64_t>(odd)}, {}));
  EXPECT_NE(text(m).find(cat("depth=", odd)), std::string::npos) << text(m);
  M beyond;
  beyond.input("x", {4}).node("Unsqueeze", {"x", "axes"}, {"y"}).output("y");
  beyond.model.graph.initializers.push_back(
      constant_of<uint64_t>("axes", u64, {0, UINT64_MAX}, {2}));
  EXPECT_EQ(error_of(beyond).render(), R"(error: /Unsqueeze: the Unsqueeze node breaks ONNX's rules
  where     node '/Unsqueeze' (Unsqueeze) of m.onnx
  operands  x: tensor[4; f32], axes: tensor[2; u64]
  found     axes in a constant tensor[2; u64]
  expected  a list of integers, each below 2^63
  help: export the model again, or correct the node)");
}

TEST_F(ImportModel, NumbersOfAnotherTypeAreConvertedAsByCast) {
  M m(6);
  m.input("x", {4}, 6)
      .node("Pad", {"x"}, {"y"}, {M::list("pads", {1, 0}), M::number("value", 1e30)});
  m.output("y");
  EXPECT_NE(text(m).find("pad(%x, tensor[i32]{2147483647}"), std::string::npos) << text(m);
}

// ---- control flow ----

Graph graph_of(const std::vector<Node>& nodes, const std::string& output) {
  Graph g;
  g.nodes = nodes;
  Value v;
  v.name = output;
  g.outputs.push_back(v);
  return g;
}

TEST_F(ImportModel, IfBecomesAnIf) {
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

TEST_F(ImportModel, AKnownConditionTakesItsBranchAlone) {
  M m;
  m.input("x", {4}).ints("one", {1});
  m.node("If", {"one"}, {"y"},
         {M::body("then_branch", graph_of({M::make_node("Relu", {"x"}, {"a"})}, "a")),
          M::body("else_branch", graph_of({M::make_node("NoSuch", {"x"}, {"b"})}, "b"))});
  m.output("y");
  EXPECT_EQ(import_model(m.model).module->functions.at("main")->body->bindings.size(), 1u);
}

// As PyTorch's exporter asks whether a tensor has a batch.
TEST_F(ImportModel, AConditionOnARankTakesItsBranchAlone) {
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

TEST_F(ImportModel, ComparisonsOfKnownNumbersAreDecided) {
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

TEST_F(ImportModel, ARecurrencesStartMayNameItsBatchAnew) {
  M m;
  m.input("x", {3, "n", 2}).input("w", {1, 4, 2}).input("r", {1, 4, 4}).input("h", {1, "m", 4});
  m.node("RNN", {"x", "w", "r", "", "", "h"}, {"y"}).output("y");
  const std::string found = text(m);
  EXPECT_THAT(found, testing::HasSubstr("tensor[3, 1, n, 4; f32]"));
  EXPECT_THAT(found, testing::HasSubstr("match_shape("));
}

TEST_F(ImportModel, NodesOfBranchesAreListedToo) {
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

TEST_F(ImportModel, LoopVariablesMayGrow) {
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

TEST_F(ImportModel, InnerGraphsWithOtherInputsAreRefused) {
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

TEST_F(ImportModel, InnerGraphsThatMakeNoResultAreRefused) {
  M m;
  m.input("c", {}, 9).input("x", {4});
  m.node("If", {"c"}, {"y"},
         {M::body("then_branch", graph_of({}, "lost")), M::body("else_branch", graph_of({}, "x"))});
  m.output("y");
  EXPECT_EQ(error_of(m).rows()[2].text,
            "output 'lost' of an inner graph of '/If', which nothing makes");
}

TEST_F(ImportModel, ShortConstantLoopsAreUnrolled) {
  M m;
  m.ints("two", {2}).input("x", {4});
  m.node("Loop", {"two", "", "x"}, {"y"}, {M::body("body", loop_body())}).output("y");
  ImportResult r = import_model(m.model);
  EXPECT_EQ(to_text(graph::type_of(r.module->functions.at("main")->body->result)),
            "tensor[16; f32]");
}

// ---- bytes ----

TEST_F(ImportModel, AnyBytesGiveAModuleOrAnError) {
  schema::ModelProto m;
  m.set_ir_version(8);
  auto* opset = m.add_opset_import();
  opset->set_version(17);
  auto* g = m.mutable_graph();
  auto add_node = [&](const char* op, std::vector<const char*> in, const char* out) {
    auto* n = g->add_node();
    n->set_op_type(op);
    for (const char* i : in) n->add_input(i);
    n->add_output(out);
    return n;
  };
  auto* x = g->add_input();
  x->set_name("x");
  auto* type = x->mutable_type()->mutable_tensor_type();
  type->set_elem_type(1);
  type->mutable_shape()->add_dim()->set_dim_param("n");
  type->mutable_shape()->add_dim()->set_dim_value(6);
  auto* t = g->add_initializer();
  t->set_name("shape");
  t->set_data_type(7);
  t->add_dims(3);
  for (int64_t v : {0, -1, 3}) t->add_int64_data(v);
  add_node("Reshape", {"x", "shape"}, "a");
  add_node("Softmax", {"a"}, "b")->add_attribute()->set_name("axis");
  add_node("Shape", {"b"}, "s");
  add_node("Slice", {"b", "s", "s", "s"}, "c");
  add_node("Concat", {"b", "b"}, "d")->add_attribute()->set_name("axis");
  auto* axis = g->mutable_node(4)->mutable_attribute(0);
  axis->set_type(schema::AttributeProto::INT);
  axis->set_i(1);
  *g->mutable_node(1)->mutable_attribute(0) = *axis;
  g->add_output()->set_name("d");
  const std::string good = m.SerializeAsString();
  uint64_t state = 7;
  auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  int modules = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (uint64_t k = next() % 4; k > 0; --k) bad[next() % bad.size()] = static_cast<char>(next());
    if (next() % 8 == 0) bad.resize(next() % bad.size());
    try {
      import_model(parse_model(bad, "m.onnx"));
      ++modules;
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::Internal) << e.render();
    }
  }
  EXPECT_GT(modules, 0);
}

// ---- reports ----

TEST_F(ImportModel, InspectionCountsAndLists) {
  M m;
  m.input("x", {"n", 4}).ints("w", {1, 2}).node("Relu", {"x"}, {"y"}).node("NoSuch", {"y"}, {"z"});
  m.output("z");
  ModelReport r = inspect_model(m.model);
  EXPECT_EQ(r.nodes, 2);
  EXPECT_EQ(r.operators.at("Relu"), 1);
  EXPECT_EQ(r.constants, 1);
  EXPECT_EQ(r.constant_bytes, 16);
  EXPECT_EQ(r.symbols, std::vector<std::string>{"n"});
  ASSERT_EQ(r.inputs.size(), 1u);
  EXPECT_EQ(r.inputs[0].type, "tensor[n, 4; f32]");
  ASSERT_EQ(r.unsupported.size(), 1u);
  EXPECT_EQ(r.unsupported[0].op, "NoSuch");
  EXPECT_EQ(r.problem, "");
}

TEST_F(ImportModel, NodesCountOnceHoweverOftenTheyAreBuilt) {
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

TEST_F(ImportModel, NodesOfFunctionsCountPerCall) {
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

TEST_F(ImportModel, TheTableFindsTheVersionThatHolds) {
  const OpTable& t = OpTable::global();
  EXPECT_NE(t.find("", "Softmax", 12), t.find("", "Softmax", 13));
  EXPECT_EQ(t.find("", "Softmax", 13), t.find("", "Softmax", 28));
  EXPECT_EQ(t.find("", "Erf", 8), nullptr);
  EXPECT_EQ(t.find("my", "Softmax", 13), nullptr);
}

}  // namespace
}  // namespace tenon::onnx
