#include "import/onnx/import_testing.h"
#include "import/onnx/op_table.h"
#include "import/onnx/read_model.h"
#include "onnx.pb.h"

namespace tenon::onnx {
namespace {

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
  options.shapes["x"] = {3, -1, -1};
  EXPECT_EQ(error_of(m, options).render(),
            R"(error: the size 'n' of m.onnx is given twice, and differs
  found     3   the shape of 'x'
  found     2   the size given for 'n'
  expected  one size)");
  ImportOptions other;
  other.shapes["z"] = {1};
  EXPECT_EQ(error_of(m, other).render(), R"(error: m.onnx has no input 'z'
  found     a shape for 'z'
  expected  one of x)");
}

TEST_F(ImportModel, AShapeFixesSymbolsForAllInputs) {
  M m;
  m.input("y", {"m", "n"}).input("x", {"n", 4}).node("Gemm", {"y", "x"}, {"z"}).output("z");
  ImportOptions options;
  options.shapes["x"] = {3, 4};
  options.dims["n"] = 3;  // the same again
  EXPECT_EQ(inspect_model(m.model, options).inputs[0].type, "tensor[m, 3; f32]");
  options.shapes["y"] = {2, 5};
  EXPECT_EQ(error_of(m, options).message(), "the size 'n' of m.onnx is given twice, and differs");
  ImportOptions fixed;
  fixed.shapes["x"] = {3, 5};
  EXPECT_EQ(error_of(m, fixed).render(), R"(error: the shape given for 'x' does not fit m.onnx
  found     5   axis 1
  expected  4
  help: the model fixes this size: export it with a symbolic one to change it)");
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
  help: `tenon ops` lists what is supported; a registered function 'my.domain:Nothing' would compute that operator: see --custom and docs/custom-operators.md; nothing was written)");
}

TEST_F(ImportModel, NodesOfAnyOperatorCount) {
  M m;
  m.input("x", {4}).node("(foo)", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx: 1 of 1 node cannot be imported (opset 17)
  node    operator  reason
  /(foo)  (foo)     not implemented
  help: `tenon ops` lists what is supported; nothing was written)");
}

TEST_F(ImportModel, AColonInAnOperatorsNameIsNoDomain) {
  M m;
  m.input("x", {4}).node("a:b", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: m.onnx: 1 of 1 node cannot be imported (opset 17)
  node  operator  reason
  /a:b  a:b       not implemented
  help: `tenon ops` lists what is supported; nothing was written)");
}

TEST_F(ImportModel, TypesThatCannotBeImportedAreUnknown) {
  M m;
  m.input("x", {4}, 27).input("z", {4}).node("Relu", {"x"}, {"y"}).output("y");
  const ModelReport report = inspect_model(m.model);
  EXPECT_EQ(report.inputs[0].type, std::nullopt);
  EXPECT_EQ(report.inputs[1].type, "tensor[4; f32]");
  EXPECT_EQ(report.outputs[0].type, std::nullopt);
}

TEST_F(ImportModel, ElementTypesAreRefusedByName) {
  M m;
  m.input("x", {4}, 27).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(),
            R"(error: m.onnx: 1 of its inputs and initializers cannot be imported (opset 17)
  node  operator  reason
  x     (input)   float6e2m3 is not implemented
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
  found     it depends on its own result, or on a node that does
  expected  nodes that depend only on results of others
  help: export the model again, or correct it)");
}

TEST_F(ImportModel, NamesThatNothingMakesAreRefused) {
  M m;
  m.input("x", {4}).node("Add", {"x", "ghost"}, {"y"}).output("y");
  EXPECT_EQ(error_of(m).render(), R"(error: /Add: m.onnx breaks ONNX's rules
  where     node '/Add' (Add) of m.onnx
  found     operand 'ghost', which nothing defines
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
  found     output 'y', which is already defined
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
  EXPECT_EQ(error_of(m).render(), R"(error: /Expand: a tensor has more bytes than 64 bits can count
  where     node '/Expand' (Expand) of m.onnx
  operands  x: tensor[1073741824, 1; f32], shape: tensor[3; i64] = [1073741824, 1073741824, 8]
  found     tensor[1073741824, 1073741824, 8; f32]
  expected  sizes whose product with the element's size is below 2^63)");
  M input;
  input.input("x", {1 << 30, 1 << 30, 8}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(input).message(), "a tensor has more bytes than 64 bits can count");
  M empty;
  empty.input("x", {1 << 30, 1 << 30, 8, 0}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_NO_THROW(text(empty));
}

// ---- element types and kinds of values ----

TEST_F(ImportModel, InputsOfOtherTypesAreRefusedByName) {
  const auto narrow = std::make_shared<ValueType>(M::value("", 27, {}).type);
  const std::pair<ValueType::Kind, const char*> kinds[] = {
      {ValueType::kNone, "an input without a type"},
      {ValueType::kSequence, "float6e2m3 is not implemented"},
      {ValueType::kMap, "float6e2m3 is not implemented"},
      {ValueType::kOptional, "float6e2m3 is not implemented"},
      {ValueType::kSparse, "sparse tensors are not implemented"},
      {ValueType::kOpaque, "opaque values are not implemented"}};
  for (const auto& [kind, reason] : kinds) {
    M m;
    m.input("x", {4}).node("Relu", {"x"}, {"y"}).output("y");
    m.model.graph.inputs[0].type.kind = kind;
    m.model.graph.inputs[0].type.element = 7;
    m.model.graph.inputs[0].type.held = narrow;
    ModelReport r = inspect_model(m.model);
    ASSERT_EQ(r.unsupported.size(), 1u) << reason;
    EXPECT_EQ(r.unsupported[0].reason, reason);
  }
}

TEST_F(ImportModel, MapsOfOtherThingsAreRefusedByName) {
  const auto sequence = std::make_shared<ValueType>(M::sequence_of(M::value("", 1, {})).type);
  const auto number = std::make_shared<ValueType>(M::value("", 1, {}).type);
  const std::tuple<int, std::shared_ptr<ValueType>, const char*> maps[] = {
      {1, number, "maps with keys of f32 are not implemented"},
      {0, number, "maps with keys of undefined are not implemented"},
      {7, sequence, "maps of values that are not tensors are not implemented"},
      {7, nullptr, "maps of values that are not tensors are not implemented"}};
  for (const auto& [key, held, reason] : maps) {
    M m;
    m.input("x", {4}).node("Identity", {"x"}, {"y"}).output("y");
    m.model.graph.inputs[0].type.kind = ValueType::kMap;
    m.model.graph.inputs[0].type.element = key;
    m.model.graph.inputs[0].type.held = held;
    const ModelReport r = inspect_model(m.model);
    ASSERT_EQ(r.unsupported.size(), 1u) << reason;
    EXPECT_EQ(r.unsupported[0].reason, reason);
  }
}

TEST_F(ImportModel, MapsAreADataType) {
  M m;
  m.model.graph.inputs = {M::map_of("x", 8, 1)};
  m.node("Identity", {"x"}, {"y"}).output("y");
  EXPECT_EQ(text(m), R"(type map[K, V] { Map(K, V) }

fn @main(%x: map[tensor[rank=1; string], tensor[rank=1; f32]]) -> map[tensor[rank=1; string], tensor[rank=1; f32]] attrs(results=["y"]) {
  %x
}
)");
  const Error e = error_of(m, {.dims = {}, .shapes = {{"x", {2}}}});
  EXPECT_EQ(e.message(), "the shape given for 'x' does not fit m.onnx");
}

TEST_F(ImportModel, SequencesAreArrays) {
  M m;
  m.model.graph.inputs = {M::sequence_of(M::value("xs", 1, {"n", 3})),
                          M::sequence_of(M::value("ys", 7, {2, 3}))};
  Value optional = m.model.graph.inputs[0];
  optional.name = "maybe";
  optional.type = ValueType();
  optional.type.kind = ValueType::kOptional;
  optional.type.held = std::make_shared<ValueType>(m.model.graph.inputs[1].type);
  m.model.graph.inputs.push_back(optional);
  m.node("Identity", {"xs"}, {"a"}).node("Identity", {"maybe"}, {"b"}).output("a").output("b");
  EXPECT_THAT(text(m),
              testing::StartsWith(
                  "fn @main(%xs: array[tensor[rank=2; f32]], %ys: array[tensor[2, 3; i64]], "
                  "%maybe: option[array[tensor[2, 3; i64]]]) -> "
                  "(array[tensor[rank=2; f32]], option[array[tensor[2, 3; i64]]])"));
  // The shape given for a sequence is that of its elements.
  EXPECT_THAT(text(m, {{{"n", 5}}, {}}), testing::HasSubstr("%xs: array[tensor[5, 3; f32]]"));
  EXPECT_THAT(text(m, {{}, {{"xs", {4, 3}}}}), testing::HasSubstr("%xs: array[tensor[4, 3; f32]]"));
  EXPECT_EQ(error_of(m, {{}, {{"xs", {4}}}}).message(),
            "the shape given for 'xs' does not fit m.onnx");
}

TEST_F(ImportModel, SequencesOfUnknownRankTakeAGivenOne) {
  M m;
  Value xs = M::value("xs", 1, {});
  xs.type.has_shape = false;
  m.model.graph.inputs = {M::sequence_of(xs)};
  m.node("Identity", {"xs"}, {"a"}).output("a");
  EXPECT_THAT(text(m), testing::HasSubstr("%xs: array[tensor[*; f32]]"));
  EXPECT_FALSE(inspect_model(m.model).inputs[0].rank_known);
  EXPECT_THAT(text(m, {{}, {{"xs", {-1, 3}}}}),
              testing::HasSubstr("%xs: array[tensor[rank=2; f32]]"));
}

SparseData sparse(const std::vector<int64_t>& indices, std::vector<int64_t> shape) {
  SparseData t;
  t.values = M::tensor("w", {7, 8});
  t.indices.tensor =
      Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(indices));
  t.dims = {2, 3};
  return t;
}

M with_sparse(const SparseData& t) {
  M m;
  m.input("x", {2, 3}, 7).node("Add", {"x", "w"}, {"y"}).output("y");
  m.model.graph.sparse_initializers = {t};
  return m;
}

TEST_F(ImportModel, SparseInitializersAreScattered) {
  const std::string expected =
      R"(  %1: tensor[6; i64] = scatter_elements(%0, tensor[2; i64]{2, 4}, tensor[2; i64]{7, 8})
  %2: tensor[2, 3; i64] = reshape(%1, shape=[2, 3])
)";
  EXPECT_THAT(text(with_sparse(sparse({2, 4}, {2}))), testing::HasSubstr(expected));
  EXPECT_THAT(text(with_sparse(sparse({0, 2, 1, 1}, {2, 2}))), testing::HasSubstr(expected));
}

TEST_F(ImportModel, SparseTensorsMustFit) {
  auto refused = [&](const SparseData& t, const std::string& found, const std::string& expected) {
    const std::string message = error_of(with_sparse(t)).render();
    EXPECT_THAT(message, testing::StartsWith("error: sparse tensor 'w' is damaged\n"));
    EXPECT_THAT(message,
                testing::HasSubstr(cat("  found     ", found, "\n  expected  ", expected)));
  };
  const char* indices = "tensor[2; i64] or tensor[2, 2; i64]";
  refused(sparse({2, 6}, {2}), "index 6", "0 to 5");
  refused(sparse({0, 0, 0, -1}, {2, 2}), "index -1", "0 to 2");
  refused(sparse({0, 1, 2}, {3}), "indices tensor[3; i64]", indices);
  refused(sparse({0, 0}, {2, 1}), "indices tensor[2, 1; i64]", indices);
  SparseData t = sparse({2, 4}, {2});
  t.indices.tensor = Tensor();
  refused(t, "no indices", indices);
  t = sparse({2, 4}, {2});
  t.dims = {0, 3};
  refused(t, "size 0", "sizes of 1 or more");
  t.dims = {int64_t{1} << 40, int64_t{1} << 40};
  refused(t, "more elements than 64 bits can count", "sizes that fit memory");
  t = sparse({2, 4}, {2});
  t.values.tensor = M::tensor("w", {7}, true).tensor;
  refused(t, "tensor[i64]", "a list of values");
}

TEST_F(ImportModel, SparseTensorsOfOtherTypesAreRefused) {
  SparseData t = sparse({2, 4}, {2});
  t.values.tensor = Tensor();
  t.values.problem = "float6e2m3 is not implemented";
  ModelReport r = inspect_model(with_sparse(t).model);
  ASSERT_EQ(r.unsupported.size(), 1u);
  EXPECT_EQ(r.unsupported[0].name, "w");
  EXPECT_EQ(r.unsupported[0].reason, "float6e2m3 is not implemented");
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

TEST_F(ImportModel, TheTableFindsTheVersionThatHolds) {
  const OpTable& t = OpTable::global();
  EXPECT_NE(t.find("", "Softmax", 12), t.find("", "Softmax", 13));
  EXPECT_EQ(t.find("", "Softmax", 13), t.find("", "Softmax", 28));
  EXPECT_EQ(t.find("", "Erf", 8), nullptr);
  EXPECT_EQ(t.find("my", "Softmax", 13), nullptr);
}

}  // namespace
}  // namespace tenon::onnx
