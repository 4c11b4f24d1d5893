// What a node says when it breaks ONNX's rules or asks for what is not implemented: one row for
// each such message of the ops_*.cc files.
#include <gtest/gtest.h>

#include "graph/op/register.h"
#include "import/onnx/import_model.h"
#include "import/onnx/model_maker.h"

namespace tenon::onnx {
namespace {

using M = ModelMaker;

// An operand: a float32 input "f 2 n *", an int64 input "i 2", a bool input "b 2", an input of
// unknown rank "f ?", a constant "= 0 -1", a float
// constant "~ 0.5 2" or of rank 0 "~ 0.5", or "" for none.
struct Refusal {
  const char* op;
  int64_t opset;
  std::vector<std::string> operands;
  std::vector<Attribute> attributes;
  std::string found;
  std::string expected = "";
  size_t outputs = 1;
  const char* domain = "";
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Adds the operand to the model and returns its name.
std::string add_operand(M& m, const std::string& text, size_t index) {
  if (text.empty()) return "";
  std::string name = cat("x", index);
  std::vector<std::string> words = words_of(text);
  const char kind = words[0][0];
  words.erase(words.begin());
  if (kind == '=') {
    std::vector<int64_t> values;
    values.reserve(words.size());
    for (const std::string& w : words) values.push_back(std::stoll(w));
    m.ints(name, values);
    return name;
  }
  if (kind == '~') {
    std::vector<float> values;
    values.reserve(words.size());
    for (const std::string& w : words) values.push_back(std::stof(w));
    TensorData t;
    t.name = name;
    t.type = 1;
    if (values.size() != 1) t.dims = {static_cast<int64_t>(values.size())};
    t.tensor =
        Tensor::copy_of(std::span<const int64_t>(t.dims), f32, std::span<const float>(values));
    m.model.graph.initializers.push_back(t);
    return name;
  }
  Value v = M::value(name, kind == 'i' ? 7 : kind == 'b' ? 9 : 1, {});
  for (const std::string& w : words) {
    if (w == "?") {
      v.type.has_shape = false;
      break;
    }
    Dimension d;
    if (std::isdigit(static_cast<unsigned char>(w[0]))) {
      d.value = std::stoll(w);
    } else {
      d.symbol = w;
    }
    v.type.shape.push_back(d);
  }
  m.model.graph.inputs.push_back(v);
  return name;
}

M model_of(const Refusal& r) {
  M m(r.opset);
  if (*r.domain != '\0') m.model.opsets[r.domain] = 1;
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < r.operands.size(); ++i) {
    inputs.push_back(add_operand(m, r.operands[i], i));
  }
  for (size_t i = 0; i < r.outputs; ++i) outputs.push_back(cat("y", i));
  m.node(r.op, inputs, outputs, r.attributes, r.domain).output("y0");
  return m;
}

Graph body(size_t inputs, const std::vector<Node>& nodes, const std::vector<std::string>& outputs) {
  Graph g;
  const int32_t types[] = {7, 9, 1};
  for (size_t i = 0; i < inputs; ++i) {
    g.inputs.push_back(M::value(cat("in", i), types[std::min<size_t>(i, 2)], {}));
  }
  g.nodes = nodes;
  for (const std::string& name : outputs) {
    Value v;
    v.name = name;
    g.outputs.push_back(v);
  }
  return g;
}

Attribute empty_tensor() {
  Attribute a = M::constant("value", {});
  a.tensor = nullptr;
  return a;
}

Node identity(const std::string& from, const std::string& to) {
  return M::make_node("Identity", {from}, {to});
}

class Refusals : public testing::Test {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }

  static void broken(const std::vector<Refusal>& refusals) {
    for (const Refusal& r : refusals) {
      SCOPED_TRACE(cat(r.op, "-", r.opset, ": ", r.found));
      try {
        import_model(model_of(r).model);
        ADD_FAILURE() << "it was imported";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Usage) << e.render();
        EXPECT_EQ(e.message(), cat("the ", r.op, " node breaks ONNX's rules"));
        std::string found, expected, where;
        for (const Error::Row& row : e.rows()) {
          if (row.label == "found") found = row.text;
          if (row.label == "expected") expected = row.text;
          if (row.label == "where") where = row.text;
        }
        EXPECT_EQ(found, r.found);
        EXPECT_EQ(expected, r.expected);
        EXPECT_TRUE(where.starts_with(cat("node '/", r.op, "' ("))) << where;
      }
    }
  }

  static void unsupported(const std::vector<Refusal>& refusals) {
    for (const Refusal& r : refusals) {
      SCOPED_TRACE(cat(r.op, "-", r.opset, ": ", r.found));
      ModelReport report = inspect_model(model_of(r).model);
      EXPECT_EQ(report.problem, "");
      ASSERT_EQ(report.unsupported.size(), 1u);
      EXPECT_EQ(report.unsupported[0].node, cat("/", r.op));
      EXPECT_EQ(report.unsupported[0].reason, r.found);
    }
  }
};

const std::string kX = "f 1 4 8 8";

TEST_F(Refusals, Operands) {
  broken({
      {"MatMul", 17, {"f 2 2"}, {}, "no operand 1, counted from 0", "one that is there"},
      {"Softmax",
       17,
       {"f 2 2"},
       {M::integer("axis", 2)},
       "axis 2 of a tensor of rank 2",
       "-2 to 1"},
      {"Softmax", 17, {"f"}, {M::integer("axis", 0)}, "axis 0 of a tensor of rank 0", "no axis"},
      {"Softmax", 17, {"f 2"}, {M::text("axis", "a")}, "attribute 'axis' holds a string", "an int"},
      {"Concat", 17, {"f 2", "f 2"}, {}, "no attribute 'axis'", "an int, which has no default"},
      {"Constant", 17, {}, {empty_tensor()}, "attribute 'value' holds nothing", "a tensor"},
      {"Transpose", 17, {"f 2 2"}, {M::list("perm", {0, 0})}, "axis 0 twice", "each axis once"},
      {"CumSum", 17, {"f", "i"}, {}, "an axis of a tensor of rank 0", "an operand with axes"},
  });
}

TEST_F(Refusals, Activation) {
  broken({
      {"Softmax", 11, {"f 2 2"}, {M::integer("axis", 3)}, "axis 3", "0 to 2"},
      {"Hardmax", 11, {"f 2 2"}, {M::integer("axis", -3)}, "axis -1", "0 to 2"},
  });
  unsupported(
      {{"Gelu", 20, {"f 2"}, {M::text("approximate", "erf")}, "approximate=erf not implemented"}});
}

TEST_F(Refusals, Attention) {
  const std::string q = "f 1 2 4 8";
  broken({
      {"Attention",
       23,
       {"f 1 4 8", "f 1 4 8", "f 1 4 8"},
       {},
       "0 heads for an operand of rank 3",
       "1 or more"},
      {"Attention",
       23,
       {q, "f 1 4 8", q},
       {},
       "operands of rank 4, 3 and 4",
       "all of rank 3, or all of rank 4"},
      {"Attention", 23, {q, q, q, "", q}, {}, "one of past_key and past_value", "both or neither"},
      {"Attention", 23, {"f 1 3 4 8", q, q}, {}, "3 heads of Q for 2 of K", "a multiple"},
      {"Attention",
       23,
       {q, q, q},
       {M::integer("qk_matmul_output_mode", 4)},
       "qk_matmul_output_mode=4",
       "0 to 3"},
      {"RotaryEmbedding",
       23,
       {q, "f 9 4", "f 9 4", "i 1 4"},
       {M::integer("rotary_embedding_dim", 9)},
       "rotary_embedding_dim=9",
       "an even size, at most 8"},
      {"CausalConvWithState", 27, {"f 1 2", "f 2 1 3"}, {}, "operands of rank 2 and 3", "rank 3"},
      {"CausalConvWithState",
       27,
       {"f 1 2 4", "f 2 1 3"},
       {M::text("activation", "relu")},
       "activation=relu",
       "none, silu or swish"},
      {"LinearAttention",
       27,
       {"f 1 4 8", "f 1 4 8", "f 1 4 8"},
       {M::integer("q_num_heads", 2), M::integer("kv_num_heads", 2), M::text("update_rule", "x")},
       "update_rule=x",
       "linear, gated, delta or gated_delta"},
      {"LinearAttention",
       27,
       {"f 1 4 8", "f 1 4 8", "f 1 4 8"},
       {M::integer("q_num_heads", 2), M::integer("kv_num_heads", 0)},
       "q_num_heads=2, kv_num_heads=0",
       "positive numbers, the first a multiple of the second"},
  });
  unsupported({
      {"Attention",
       23,
       {"f 1 h 4 8", q, q},
       {},
       "a number of heads known only at run time not implemented"},
      {"RotaryEmbedding",
       23,
       {"f 1 2 4 d", "f 9 4", "f 9 4", "i 1 4"},
       {},
       "a head size known only at run time not implemented"},
      {"CausalConvWithState",
       27,
       {"f 1 c 4", "f c 1 3"},
       {},
       "channels known only at run time not implemented"},
  });
}

TEST_F(Refusals, Control) {
  const Attribute one =
      M::body("then_branch",
              body(0, {M::make_node("Constant", {}, {"a"}, {M::integer("value_int", 1)})}, {"a"}));
  broken({
      {"If", 17, {"b"}, {one}, "no attribute 'else_branch'", "a graph"},
      {"If",
       17,
       {"b"},
       {one, M::body("else_branch", body(0, {}, {}))},
       "branches with 1 and 0 outputs",
       "as many of both"},
      {"Loop",
       17,
       {"i"},
       {M::body("body", body(2, {}, {}))},
       "1 operands",
       "trip count and condition at least, by their empty names"},
      {"Loop",
       17,
       {"i", "", "f"},
       {M::body("body", body(3, {}, {"in1"}))},
       "a body with 1 outputs",
       "at least 2: the condition and 1 variables"},
      {"Loop",
       17,
       {"i", "", "f"},
       {M::body("body", body(3,
                             {identity("in1", "c"),
                              M::make_node("Cast", {"in2"}, {"v"}, {M::integer("to", 7)})},
                             {"c", "v"}))},
       "a loop variable that becomes int64",
       "float32"},
      {"Scan",
       17,
       {"f 2 2"},
       {M::integer("num_scan_inputs", 2), M::body("body", body(1, {}, {}))},
       "num_scan_inputs=2",
       "1 to 1, the number of operands"},
      {"Scan",
       17,
       {"f 2", "f 2 2"},
       {M::integer("num_scan_inputs", 1), M::body("body", body(2, {}, {}))},
       "a body with 0 outputs",
       "at least 1, the number of states"},
      {"Scan",
       17,
       {"f 2", "f 2 2"},
       {M::integer("num_scan_inputs", 1), M::body("body", body(2, {}, {"in0"})),
        M::list("scan_input_directions", {0, 0})},
       "scan_input_directions has 2 entries",
       "1"},
      {"Scan",
       17,
       {"f 2", "f 2 2"},
       {M::integer("num_scan_inputs", 1), M::body("body", body(2, {}, {"in0"})),
        M::list("scan_output_axes", {0})},
       "scan_input_axes and scan_output_axes of 1 and 1 entries",
       "1 and 0"},
  });
}

TEST_F(Refusals, LoopsWhoseShapesOnlyTheBodyKnows) {
  // Yields the places of what is not 0, as many as there are.
  Graph yields = body(2, {identity("in1", "c"), M::make_node("NonZero", {"outside"}, {"places"})},
                      {"c", "places"});
  Graph grows = body(3, {identity("in1", "c"), M::make_node("Unsqueeze", {"in2", "axis"}, {"v"})},
                     {"c", "v"});
  for (auto& [graph, reason] :
       {std::pair{yields, "outputs of a shape known only inside the loop not implemented"},
        {grows, "loop variables of changing rank not implemented"}}) {
    M m;
    m.input("n", {}, 7).input("outside", {4}).ints("axis", {0});
    std::vector<std::string> operands = {"n", ""};
    if (graph.inputs.size() == 3) operands.push_back("outside");
    m.node("Loop", operands, {"y"}, {M::body("body", graph)}).output("y");
    ModelReport report = inspect_model(m.model);
    EXPECT_EQ(report.problem, "");
    ASSERT_EQ(report.unsupported.size(), 1u) << reason;
    EXPECT_EQ(report.unsupported[0].reason, reason);
  }
}

TEST_F(Refusals, Convolution) {
  const std::string w = "f 4 4 3 3";
  broken({
      {"Conv",
       17,
       {"f 1 4", w},
       {},
       "an operand of rank 2",
       "3 or more: batch, channels and at least one spatial axis"},
      {"Conv", 17, {kX, w}, {M::integer("group", 0)}, "group=0", "1 or more"},
      {"Conv",
       17,
       {kX, w},
       {M::list("kernel_shape", {2, 2})},
       "kernel_shape=[2, 2]",
       "[3, 3], as the weight has it"},
      {"Conv",
       17,
       {kX, w},
       {M::list("strides", {1})},
       "strides has 1 entries",
       "2, one for each spatial axis"},
      {"Conv",
       17,
       {kX, w},
       {M::list("dilations", {1, 0})},
       "dilations holds 0",
       "positive numbers of 32 bits"},
      {"Conv", 17, {kX, "f 4 4 3"}, {}, "a kernel of 1 axes", "2, one for each spatial axis"},
      {"Conv", 17, {kX, "f 4 4 0 3"}, {}, "a kernel of size 0", "positive sizes of 32 bits"},
      {"Conv",
       17,
       {kX, w},
       {M::text("auto_pad", "SOME")},
       "auto_pad=SOME",
       "NOTSET, VALID, SAME_UPPER or SAME_LOWER"},
      {"Conv",
       17,
       {kX, w},
       {M::list("pads", {1, 1})},
       "pads has 2 entries",
       "4, two for each spatial axis"},
      {"Conv",
       17,
       {kX, w},
       {M::list("pads", {1, 1, int64_t{1} << 40, 1})},
       "pads holds 1099511627776",
       "numbers of 32 bits"},
      {"ConvTranspose",
       17,
       {kX, w},
       {M::list("output_padding", {1})},
       "output_padding has 1 entries",
       "2, one for each spatial axis"},
      {"ConvTranspose",
       17,
       {kX, w},
       {M::list("output_shape", {9})},
       "output_shape has 1 entries",
       "2, one for each spatial axis"},
  });
  unsupported({
      {"Conv", 17, {"f 1 4 8 8 8 8", "f 4 4 3 3 3 3"}, {}, "rank 6 not implemented"},
      {"Conv",
       17,
       {kX, "f 4 4 k 3"},
       {},
       "a kernel of a size known only at run time not implemented"},
  });
}

TEST_F(Refusals, Pooling) {
  broken({
      {"MaxPool",
       17,
       {"f 1 4"},
       {M::list("kernel_shape", {2})},
       "an operand of rank 2",
       "3 or more: batch, channels and at least one spatial axis"},
      {"LpPool",
       18,
       {kX},
       {M::list("kernel_shape", {2, 2}), M::integer("p", 0)},
       "p=0",
       "a positive number"},
  });
  unsupported({{"MaxPool",
                17,
                {"f 1 4 8 8 8 8"},
                {M::list("kernel_shape", {2, 2, 2, 2})},
                "rank 6 not implemented"}});
}

TEST_F(Refusals, Creation) {
  broken({
      {"Constant",
       17,
       {},
       {},
       "no attribute that holds a value",
       "one of value, value_int, value_ints, value_float and value_floats"},
      {"ConstantOfShape",
       17,
       {"= 2"},
       {M::constant("value", M::tensor("v", {1, 2}))},
       "a value of 2 elements",
       "one"},
      {"Range", 17, {"= 0", "= 4", "= 0"}, {}, "a delta of 0", "another number"},
      {"Range",
       17,
       {"~ 0", "~ 1e30", "~ 1"},
       {},
       "a range of 1.0000000150474662e+30 elements",
       "at most 9e15"},
      {"EyeLike", 17, {"f 2"}, {}, "an operand of rank 1", "a matrix"},
      {"HannWindow", 17, {"= 2 3"}, {}, "a size of 2 elements", "one"},
      {"EyeLike",
       17,
       {"f 2 2"},
       {M::integer("dtype", -1)},
       "dtype=-1",
       "the number of an element type"},
  });
  unsupported({
      {"Constant", 17, {}, {M::text("value_string", "a")}, "string is not implemented"},
      {"Constant", 17, {}, {M::number("sparse_value", 1)}, "sparse tensors are not implemented"},
      {"EyeLike", 17, {"f 2 2"}, {M::integer("dtype", 16)}, "dtype=bfloat16 is not implemented"},
      {"ConstantOfShape",
       17,
       {"= 2"},
       {M::constant("value",
                    [] {
                      TensorData t;
                      t.problem = "int4 is not implemented";
                      return t;
                    }())},
       "int4 is not implemented"},
  });
}

TEST_F(Refusals, Einsum) {
  auto equation = [](const char* text) {
    return std::vector<Attribute>{M::text("equation", text)};
  };
  broken({
      {"Einsum",
       17,
       {"f 2"},
       equation("1->1"),
       "the term \"1\" of the equation",
       "letters, and at most one ellipsis '...'"},
      {"Einsum",
       17,
       {"f 2"},
       equation("i,j->ij"),
       "an equation of 2 terms",
       "1, the number of operands"},
      {"Einsum",
       17,
       {"f 2"},
       equation("ijk...->i"),
       "the term \"ijk...\" for operand 0",
       "at most 1 labels, its rank"},
      {"Einsum",
       17,
       {"f 2"},
       equation("ij->i"),
       "the term \"ij\" for operand 0",
       "1 labels, its rank"},
      {"Einsum",
       17,
       {"f 2"},
       equation("i->j"),
       "the label 'j' of the result",
       "labels of the operands, each once"},
  });
}

TEST_F(Refusals, Elementwise) {
  broken({
      {"Add",
       6,
       {"f 2 3", "f 3"},
       {M::integer("broadcast", 1), M::integer("axis", 2)},
       "axis 2 for operands of rank 2 and 1",
       "0 to 1"},
      {"BitShift", 17, {"i 2", "i 2"}, {}, "direction=", "LEFT or RIGHT"},
      {"Cast", 17, {"f 2"}, {}, "no attribute 'to'", "the element type to cast to"},
      {"BitCast", 26, {"f 2"}, {}, "no attribute 'to'", "the element type to cast to"},
  });
  unsupported({
      {"Cast", 5, {"f 2"}, {M::text("to", "STRING")}, "to=string not implemented"},
      {"Cast", 17, {"f 2"}, {M::integer("to", 16)}, "to=bfloat16 is not implemented"},
      {"Dropout", 17, {"f 2", "~ 0.5", "= 1"}, {}, "training_mode=1 not implemented"},
      {"BitCast", 26, {"f 2"}, {M::integer("to", 6)}, "reinterpreting bits not implemented"},
  });
}

TEST_F(Refusals, Indexing) {
  broken({
      {"ScatterElements",
       18,
       {"f 2", "i 2", "f 2"},
       {M::text("reduction", "mean")},
       "reduction=mean",
       "none, add, mul, max or min"},
      {"TopK", 17, {"f 4", "= 1 2"}, {}, "k of 2 elements", "one"},
      {"CumSum", 17, {"f 4", "= 0 0"}, {}, "an axis of 2 elements", "one"},
      {"TensorScatter",
       24,
       {"f 1 4 2", "f 1 2 2"},
       {M::text("mode", "wrap")},
       "mode=wrap",
       "linear or circular"},
      {"TensorScatter",
       24,
       {"f 1 4 2", "f 1 2 2"},
       {M::integer("axis", 0)},
       "axis 0, the batch",
       "another axis"},
  });
}

TEST_F(Refusals, Loss) {
  broken({
      {"NegativeLogLikelihoodLoss",
       17,
       {"f 2", "i"},
       {},
       "scores of rank 1",
       "2 or more: batch, classes and any others"},
      {"NegativeLogLikelihoodLoss",
       17,
       {"f 2 3", "i 2"},
       {M::text("reduction", "max")},
       "reduction=max",
       "none, sum or mean"},
  });
}

TEST_F(Refusals, Products) {
  broken({
      {"Gemm", 17, {"f 2 3 4", "f 4 5"}, {}, "operands of rank 3 and 2", "matrices"},
      {"Gemm",
       6,
       {"f 2 3", "f 3 4", "f 4"},
       {M::integer("broadcast", 0)},
       "C of rank 1 without broadcast=1",
       "rank 2"},
      {"Gemm",
       17,
       {"f 2 3", "f 3 4", "f 1 2 4"},
       {},
       "C of rank 3",
       "at most 2: it is broadcast to the product"},
  });
  unsupported({{"FusedMatMul",
                17,
                {"f 2 3", "f 3 4"},
                {M::integer("transBatchA", 1)},
                "transBatchA=1, transBatchB=1 not implemented",
                "",
                1,
                "com.microsoft"}});
}

TEST_F(Refusals, Normalization) {
  const std::vector<std::string> batch = {kX, "f 4", "f 4", "f 4", "f 4"};
  broken({
      {"GroupNormalization",
       21,
       {kX, "f 4", "f 4"},
       {M::integer("num_groups", 0)},
       "num_groups=0",
       "1 or more"},
      {"LpNormalization", 17, {kX}, {M::integer("p", 3)}, "p=3", "1 or 2"},
  });
  unsupported({
      {"BatchNormalization",
       17,
       batch,
       {M::integer("training_mode", 1)},
       "training_mode=1 not implemented"},
      {"BatchNormalization", 7, batch, {M::integer("spatial", 0)}, "spatial=0 not implemented"},
      {"BatchNormalization", 9, batch, {}, "the outputs of training not implemented", "", 3},
      {"SkipLayerNormalization",
       17,
       {"f 1 2 4", "f 1 2 4", "f 4"},
       {},
       "mean and variance outputs not implemented",
       "",
       2,
       "com.microsoft"},
      {"SkipSimplifiedLayerNormalization",
       17,
       {"f 1 2 4", "f 1 2 4", "f 4"},
       {},
       "mean and variance outputs not implemented",
       "",
       2,
       "com.microsoft"},
  });
}

TEST_F(Refusals, Recurrence) {
  const std::string x = "f 5 1 3", w = "f 1 4 3", r = "f 1 4 4";
  broken({
      {"RNN", 17, {"f 5 3", w, r}, {}, "X of rank 2", "3"},
      {"RNN", 17, {x, "f 4 3", r}, {}, "W and R of rank 2 and 3", "3"},
      {"RNN",
       17,
       {x, w, r},
       {M::text("direction", "up")},
       "direction=up",
       "forward, reverse or bidirectional"},
      {"RNN", 17, {x, w, r}, {M::texts("activations", {"Tanh", "Tanh"})}, "2 activations", "1"},
  });
  unsupported({{"RNN",
                17,
                {x, w, r},
                {M::texts("activations", {"Gelu"})},
                "activation gelu not implemented"}});
}

TEST_F(Refusals, Reduction) {
  unsupported({{"ReduceSum",
                17,
                {"f 2 3", "i k"},
                {},
                "several axes computed at run time not implemented"}});
}

TEST_F(Refusals, Resizing) {
  broken({
      {"Resize", 19, {kX, "", "~ 1 1 -2 2"}, {}, "a scale of -2", "a positive number, at most 1e6"},
      {"Resize",
       10,
       {kX, "~ 1 1 2 2"},
       {M::text("mode", "cubic")},
       "mode=cubic",
       "nearest or linear"},
      {"Resize", 10, {kX, "~ 2 2"}, {}, "2 scales", "4, one for each axis"},
      {"Resize",
       19,
       {kX, "", "", "= 1 4 4 4"},
       {M::text("keep_aspect_ratio_policy", "fit")},
       "keep_aspect_ratio_policy=fit",
       "stretch, not_larger or not_smaller"},
      {"Resize", 19, {kX, "", "", "= 4 4"}, {}, "2 sizes", "4, one for each axis"},
      {"Resize", 19, {kX, "", "~ 2 2"}, {}, "2 scales", "4, one for each axis"},
      {"Resize", 19, {kX}, {}, "neither scales nor sizes", "one of them"},
  });
  unsupported({
      {"Resize",
       19,
       {"f 1 4 h 8", "", "", "= 1 4 4 4"},
       {M::text("keep_aspect_ratio_policy", "not_larger")},
       "keep_aspect_ratio_policy=not_larger of sizes known only at run time not implemented"},
  });
}

TEST_F(Refusals, Sampling) {
  const std::string grid = "f 1 2 2 2";
  broken({
      {"GridSample",
       20,
       {kX, grid},
       {M::text("mode", "best")},
       "mode=best",
       "linear, nearest or cubic"},
      {"GridSample",
       20,
       {kX, grid},
       {M::text("padding_mode", "ones")},
       "padding_mode=ones",
       "zeros, border or reflection"},
      {"GridSample", 20, {kX, "f 1 2 2"}, {}, "operands of rank 4 and 3", "one rank, 3 or more"},
  });
  unsupported(
      {{"GridSample", 20, {"f 1 1 2 2 2 2", "f 1 2 2 2 2 4"}, {}, "rank 6 not implemented"}});
}

TEST_F(Refusals, Shapes) {
  broken({
      {"Reshape",
       17,
       {"f 2 3", "= 2 3 0"},
       {},
       "a 0 at 2 of the shape, to keep that size",
       "positions below 2, the operand's rank"},
      {"Reshape", 17, {"f 2 3", "= -1 -1"}, {}, "two -1 in the shape", "one at most"},
      {"Reshape", 17, {"f 2 3", "= -2 3"}, {}, "a size of -2", "a size, or -1 for what is left"},
      {"Reshape",
       17,
       {"f 0 3", "= 0 -1"},
       {M::integer("allowzero", 1)},
       "a -1 beside a 0 in the shape, with allowzero",
       "sizes that tell what is left"},
      {"Flatten", 17, {"f 2 3"}, {M::integer("axis", 3)}, "axis 3", "0 to 2"},
      {"Unsqueeze", 11, {"f 2 3"}, {}, "no axes", "the axes to insert"},
      {"Transpose",
       17,
       {"f 2 3"},
       {M::list("perm", {0})},
       "perm has 1 entries",
       "2, one for each axis"},
      {"Concat", 17, {}, {M::integer("axis", 0)}, "no operands", "one or more"},
      {"Split", 18, {"f 4"}, {M::integer("num_outputs", 0)}, "num_outputs=0", "1 to 100000"},
      {"Split", 17, {"f 4", "= 4"}, {}, "1 sizes", "2, one for each output", 2},
      {"Tile", 5, {"f 4", "= 2", "= 0 0"}, {}, "an axis of 2 elements", "one"},
      {"DepthToSpace", 17, {kX}, {M::integer("blocksize", 0)}, "blocksize=0", "1 or more"},
      {"DepthToSpace", 17, {"f 4 4"}, {M::integer("blocksize", 2)}, "an operand of rank 2", "4"},
      {"DepthToSpace",
       17,
       {kX},
       {M::integer("blocksize", 2), M::text("mode", "X")},
       "mode=X",
       "DCR or CRD"},
      {"SpaceToDepth",
       26,
       {kX},
       {M::integer("blocksize", 2), M::text("mode", "X")},
       "mode=X",
       "DCR or CRD"},
  });
  Refusal high{"Unsqueeze", 17, {"f 1 1 1", "="}, {}, "a result of rank 33", "at most 32"};
  for (int i = 0; i < 30; ++i) high.operands[1] += cat(" ", i);
  broken({high});
  unsupported({
      {"Unsqueeze", 17, {"f 2", "i 2"}, {}, "axes computed at run time not implemented"},
      {"Tile", 5, {"f 4", "= 2", "i"}, {}, "axis computed at run time not implemented"},
  });
}

TEST_F(Refusals, Slicing) {
  broken({
      {"Slice",
       1,
       {"f 4 4"},
       {M::list("starts", {0, 0}), M::list("ends", {1})},
       "starts, ends and axes of 2, 1 and 2 entries",
       "as many of each"},
      {"Slice",
       17,
       {"f 4 4", "= 0 0", "= 1"},
       {},
       "starts, ends, axes and steps of unequal length",
       "2 entries of each, as starts has"},
      {"Slice", 17, {"f 4", "= 0", "= 1", "= 0", "= 0"}, {}, "a step of 0", "another number"},
      {"Pad", 17, {"f 4", "= 1"}, {}, "1 pads", "2, two for each axis"},
      {"Pad",
       17,
       {"f 4", "= 1 1"},
       {M::text("mode", "mirror")},
       "mode=mirror",
       "constant, reflect, edge or wrap"},
      {"CenterCropPad", 18, {"f 4 4", "= 2"}, {}, "1 sizes", "2, one for each axis"},
  });
  unsupported({
      {"Slice",
       17,
       {"f 4", "i k", "i k"},
       {},
       "a number of axes known only at run time not implemented"},
      {"Slice",
       17,
       {"f 4 4", "= 0", "= 1", "i 1", "= 2"},
       {},
       "steps along axes computed at run time not implemented"},
  });
}

}  // namespace
}  // namespace tenon::onnx
