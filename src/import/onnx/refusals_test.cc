// Refusals of arithmetic operators.
#include "graph/op/register.h"
#include "import/onnx/refusals_testing.h"

namespace tenon::onnx {
namespace {

class RefusalsOfComputation : public Refusals {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }
};

TEST_F(RefusalsOfComputation, Operands) {
  broken({
      {"MatMul", 17, {"f 2 2"}, {}, "no operand 1, counted from 0", "an existing operand"},
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

TEST_F(RefusalsOfComputation, Activation) {
  broken({
      {"Softmax", 11, {"f 2 2"}, {M::integer("axis", 3)}, "axis 3", "0 to 2"},
      {"Hardmax", 11, {"f 2 2"}, {M::integer("axis", -3)}, "axis -1", "0 to 2"},
  });
  unsupported(
      {{"Gelu", 20, {"f 2"}, {M::text("approximate", "erf")}, "approximate=erf not implemented"}});
}

TEST_F(RefusalsOfComputation, Attention) {
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

TEST_F(RefusalsOfComputation, Convolution) {
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
      {"Col2Im", 18, {"f 1 4", "= 4 4", "= 2 2"}, {}, "an operand of rank 2", "3"},
      {"Col2Im",
       18,
       {"f 1 4 9", "=", "="},
       {},
       "an empty image_shape",
       "one size for each spatial axis"},
      {"Col2Im",
       18,
       {"f 1 4 9", "= 4 4", "= 2"},
       {},
       "a block_shape of 1 sizes",
       "2, one for each spatial axis"},
      {"DeformConv",
       19,
       {kX, w, "f 1 18 6 6"},
       {M::integer("offset_group", 0)},
       "offset_group=0",
       "1 or more"},
      {"ConvTranspose",
       17,
       {kX, w},
       {M::list("output_shape", {9})},
       "output_shape has 1 entries",
       "2, one for each spatial axis"},
  });
  unsupported({
      {"Conv", 17, {"f 1 4 8 8 8 8", "f 4 4 3 3 3 3"}, {}, "rank 6 not implemented"},
  });
}

std::vector<Attribute> roi(int64_t rows, int64_t columns) {
  return {M::list("pooled_shape", {rows, columns})};
}

TEST_F(RefusalsOfComputation, Pooling) {
  broken({
      {"MaxPool",
       17,
       {"f 1 4"},
       {M::list("kernel_shape", {2})},
       "an operand of rank 2",
       "3 or more: batch, channels and at least one spatial axis"},
      {"MaxUnpool",
       11,
       {"f 1 4", "i 1 4"},
       {M::list("kernel_shape", {2})},
       "an operand of rank 2",
       "3 or more: batch, channels and at least one spatial axis"},
      {"MaxUnpool",
       11,
       {kX, "i 1 4 8 8", "= 4 4"},
       {M::list("kernel_shape", {2, 2})},
       "an output_shape of 2 sizes",
       "4, one for each axis"},
      {"LpPool",
       18,
       {kX},
       {M::list("kernel_shape", {2, 2}), M::integer("p", 0)},
       "p=0",
       "a positive number"},
      {"MaxRoiPool",
       17,
       {"f 1 4 8", "f 2 5"},
       roi(2, 2),
       "X of rank 3",
       "4: batch, channels, two axes"},
      {"MaxRoiPool",
       17,
       {kX, "f 2 4"},
       roi(2, 2),
       "rois that aren't lists of 5",
       "[regions, 5]: image, x1, y1, x2, y2"},
      {"MaxRoiPool", 17, {kX, "f 2 5"}, roi(2, 0), "pooled_shape=[2, 0]", "two sizes of 1 or more"},
  });
  unsupported({{"MaxPool",
                17,
                {"f 1 4 8 8 8 8"},
                {M::list("kernel_shape", {2, 2, 2, 2})},
                "rank 6 not implemented"}});
}

TEST_F(RefusalsOfComputation, Einsum) {
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

TEST_F(RefusalsOfComputation, Elementwise) {
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
      {"BitCast",
       26,
       {"f 2"},
       {M::integer("to", 7)},
       "to=i64 for an operand of f32",
       "a type of 32 bits"},
      {"Cast",
       25,
       {"f 2"},
       {M::integer("to", 24), M::text("round_mode", "odd")},
       "round_mode=odd",
       "up, down or nearest"},
  });
  unsupported({
      {"Cast", 5, {"f 2"}, {M::text("to", "FLOAT6")}, "to=float6 not implemented"},
      {"Cast", 17, {"f 2"}, {M::integer("to", 27)}, "to=float6e2m3 is not implemented"},
  });
}

TEST_F(RefusalsOfComputation, Random) {
  const Attribute shape = M::list("shape", {2, 3});
  broken({
      {"RandomNormal", 17, {}, {}, "no attribute 'shape'", "the sizes of the result"},
      {"RandomNormal", 17, {}, {M::list("shape", {-2})}, "shape holds -2", "sizes of 0 or more"},
      {"RandomUniform", 17, {}, {shape, M::integer("dtype", 7)}, "dtype=i64", "a type of floats"},
      {"Multinomial", 17, {"f 2"}, {}, "an operand of rank 1", "2: batch, classes"},
      {"Multinomial", 17, {"f 2 3"}, {M::integer("dtype", 1)}, "dtype=f32", "int32 or int64"},
      {"Multinomial",
       17,
       {"f 2 3"},
       {M::integer("sample_size", -1)},
       "sample_size=-1",
       "0 or more"},
  });
}

TEST_F(RefusalsOfComputation, Gates) {
  broken({{"SwiGLU", 28, {"f 2 3", "f 3"}, {}, "operands of rank 2 and 1", "one shape"}});
}

TEST_F(RefusalsOfComputation, Loss) {
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

TEST_F(RefusalsOfComputation, Products) {
  broken({
      {"Det", 22, {"f 2"}, {}, "an operand of rank 1", "2 or more: matrices"},
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
}

TEST_F(RefusalsOfComputation, Normalization) {
  broken({
      {"BatchNormalization",
       17,
       {"f", "f 1", "f 1", "f 1", "f 1"},
       {M::integer("training_mode", 1)},
       "an operand of rank 0",
       "1 or more"},
      {"MeanVarianceNormalization", 8, {"f 2"}, {}, "an operand of rank 1", "2 or more"},
      {"GroupNormalization",
       21,
       {kX, "f 4", "f 4"},
       {M::integer("num_groups", 0)},
       "num_groups=0",
       "1 or more"},
      {"LpNormalization", 17, {kX}, {M::integer("p", 3)}, "p=3", "1 or 2"},
  });
}

TEST_F(RefusalsOfComputation, Recurrence) {
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

TEST_F(RefusalsOfComputation, Signals) {
  broken({
      {"DFT", 20, {"f 8"}, {}, "an operand of rank 1", "2 or more"},
      {"DFT", 20, {"f 1 8 3"}, {}, "numbers of 3 parts", "1 or 2: the size of the last axis"},
      {"DFT", 20, {"f 1 8 1", "= 0"}, {}, "a dft_length of 0", "1 or more"},
      {"DFT", 20, {"f 1 8 1", "= 4 4"}, {}, "a dft_length of 2 elements", "one"},
      {"DFT", 20, {"f 1 8 1", "", "= -1"}, {}, "axis 2, the parts of numbers", "another axis"},
      {"DFT", 20, {"f 1 8 1", "", "= 0 1"}, {}, "an axis of 2 elements", "one"},
      {"DFT", 17, {"f 1 8 1"}, {M::integer("axis", 3)}, "axis 3 of a tensor of rank 3", "-3 to 2"},
      {"STFT", 17, {"f 1 2 8 1", "= 2"}, {}, "an operand of rank 4", "2 or 3"},
      {"STFT", 17, {"f 1 8 1", "= 0"}, {}, "a frame_step of 0", "1 or more"},
      {"STFT", 17, {"f 1 8 1", "= 2", "f 4 1"}, {}, "a window of rank 2", "1"},
      {"STFT", 17, {"f 1 8 1", "= 2", "", "= 0"}, {}, "a frame_length of 0", "1 or more"},
      {"MelWeightMatrix",
       17,
       {"= 2 2", "= 8", "= 8", "~ 0", "~ 4"},
       {},
       "num_mel_bins of 2 elements",
       "one"},
  });
}

TEST_F(RefusalsOfComputation, Reduction) {
  broken({
      {"ReduceSum", 17, {"f 2 3", "i 2 1"}, {}, "axes of rank 2", "a list"},
      {"ReduceSum",
       17,
       {"f 2 3", "i 1000000000000"},
       {},
       "1000000000000 axes of a tensor of rank 2",
       "at most 2"},
  });
  unsupported({{"ReduceSum",
                17,
                {"f 2 3", "i k"},
                {M::integer("keepdims", 0)},
                "keepdims=0 for a number of axes known only at run time not implemented"}});
}

}  // namespace
}  // namespace tenon::onnx
