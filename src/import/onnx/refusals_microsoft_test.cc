// Refusals of operators of com.microsoft.
#include "import/onnx/op_table.h"
#include "import/onnx/refusals_testing.h"

namespace tenon::onnx {
namespace {

class RefusalsOfMicrosoft : public RefusalsOfDomain<RefusalsOfMicrosoft> {
 public:
  static constexpr const char* kDomain = kMicrosoft;
};

std::vector<Attribute> heads(int64_t n) {
  return {M::integer("num_heads", n)};
}

TEST_F(RefusalsOfMicrosoft, Attention) {
  const std::string x = "f 1 4 6", w = "f 6 24", b = "f 24";
  auto sizes = [](const std::vector<int64_t>& each) {
    return std::vector<Attribute>{M::integer("num_heads", 2), M::list("qkv_hidden_sizes", each)};
  };
  broken({
      {"Attention", {x, w, b}, {}, "no attribute 'num_heads'", "an int, which has no default"},
      {"Attention", {x, w, b}, heads(0), "num_heads=0", "1 or more"},
      {"Attention",
       {"f 4 6", w, b},
       heads(2),
       "an input of rank 2",
       "3: batch, sequence and features"},
      {"Attention", {x, w, b}, sizes({8, 8}), "qkv_hidden_sizes has 2 entries", "3: of Q, K and V"},
      {"Attention",
       {x, w, b},
       sizes({8, 8, 7}),
       "qkv_hidden_sizes holds 7",
       "positive multiples of num_heads=2"},
      {"Attention", {x, w, b, "", "f 1 2 3 4"}, heads(2), "past of rank 4", "5"},
      {"Attention", {x, w, b, "i 1 1 1 4 4"}, heads(2), "a mask of rank 5", "1 to 4"},
  });
  unsupported({{"Attention",
                {x, w, b},
                {M::integer("num_heads", 2), M::integer("do_rotary", 1)},
                "do_rotary=1 not implemented"}});
}

TEST_F(RefusalsOfMicrosoft, MultiHeadAttention) {
  const std::string x = "f 1 4 8", cache = "f 1 2 3 4";
  const char* op = "MultiHeadAttention";
  broken({
      {op, {"f 4 8", x, x}, heads(2), "query of rank 2", "3, or 5 if packed"},
      {op,
       {x, x, cache},
       heads(2),
       "key and value of rank 3 and 4",
       "both of rank 3, or both of rank 4"},
      {op,
       {"f 1 4 2 2 4"},
       heads(2),
       "operand 0 of shape [..., 2, 2, 4]",
       "[..., 2, 3, size]: num_heads and what is packed"},
      {op, {"f 1 4 2 3 4", x}, heads(2), "key beside a packed query", "no key"},
      {op,
       {x, "f 1 4 1 2 4"},
       heads(2),
       "operand 1 of shape [..., 1, 2, 4]",
       "[..., 2, 2, size]: num_heads and what is packed"},
      {op, {x, "f 1 4 2 2 4", x}, heads(2), "value beside a packed key", "no value"},
      {op, {x, x, x, "f 1 24"}, heads(2), "bias of rank 2", "1"},
      {op,
       {x, x, x, "", "", "", cache},
       heads(2),
       "one of past_key and past_value",
       "both or neither"},
      {op,
       {x, cache, cache, "", "", "", cache, cache},
       heads(2),
       "past_key beside a key of rank 4",
       "no past_key"},
  });
  unsupported({{op,
                {x, x, x, "", "", "", cache, cache, "= 1", "i 1 1 3"},
                heads(2),
                "cache_indirection not implemented"}});
}

TEST_F(RefusalsOfMicrosoft, GroupQueryAttention) {
  const std::string q = "f 1 4 16", kv = "f 1 4 8", cache = "f 1 2 3 4", table = "f 9 2";
  const char* op = "GroupQueryAttention";
  auto with = [](std::vector<Attribute> more) {
    more.push_back(M::integer("num_heads", 4));
    more.push_back(M::integer("kv_num_heads", 2));
    return more;
  };
  const std::vector<Attribute> plain = with({});
  const std::vector<Attribute> sliding =
      with({M::integer("sliding_window_cache", 1), M::integer("local_window_size", 2)});
  broken({
      {op,
       {q, kv, kv, "", "", "i 1", "= 4"},
       {M::integer("num_heads", 4), M::integer("kv_num_heads", 3)},
       "num_heads=4, kv_num_heads=3",
       "positive numbers of 32 bits, the first a multiple of the second"},
      {op, {"f 4 16", kv, kv, "", "", "i 1", "= 4"}, plain, "query of rank 2", "3"},
      {op, {q, kv, "", "", "", "i 1", "= 4"}, plain, "one of key and value", "both or neither"},
      {op,
       {q, kv, kv, cache, "", "i 1", "= 4"},
       plain,
       "one of past_key and past_value",
       "both or neither"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4", "", "", "", "", "", "", "", "f 4"},
       plain,
       "one of q_norm_weight and k_norm_weight",
       "both or neither"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4", "f 9 3", "f 9 3"},
       with({M::integer("do_rotary", 1)}),
       "cos_cache of 3 columns",
       "at most 2, half a head"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4"},
       with({M::integer("causal", 0), M::integer("local_window_size", 2)}),
       "local_window_size=2 with causal=0",
       "-1"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4"},
       with({M::integer("qk_output", 3)}),
       "qk_output=3",
       "0 to 2"},
      {op,
       {q, kv, kv, cache, cache, "i 1", "= 4"},
       with({M::integer("sliding_window_cache", 1)}),
       "local_window_size=-1 with sliding_window_cache=1",
       "1 or more"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4"},
       sliding,
       "no past_key with sliding_window_cache=1",
       "a past_key"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4"},
       with({M::text("v_quant_type", "PER_ROW")}),
       "v_quant_type=PER_ROW",
       "NONE, PER_TENSOR or PER_CHANNEL"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4"},
       with({M::text("k_quant_type", "PER_TENSOR"), M::integer("kv_cache_bit_width", 2)}),
       "kv_cache_bit_width=2",
       "4 or 8"},
  });
  unsupported({
      {op,
       {q, kv, kv, cache, cache, "i 1", "= 4", "", "", "", "", "", "f 1"},
       with({M::text("k_quant_type", "PER_TENSOR")}),
       "a cache of f32 with kv_cache_bit_width=8 not implemented"},
      {op,
       {q, kv, kv, cache, cache, "i 1", "= 4", "", "", "", "f 1 1 4 4"},
       sliding,
       "attention_bias with sliding_window_cache=1 not implemented"},
      {op,
       {q, kv, kv, cache, cache, "i 1", "= 4"},
       with({M::integer("sliding_window_cache", 1), M::integer("local_window_size", 2),
             M::integer("qk_output", 1)}),
       "qk_output with sliding_window_cache=1 not implemented"},
      {op,
       {q, kv, kv, "", "", "i 1", "= 4", "f 9 c", "f 9 c"},
       with({M::integer("do_rotary", 1)}),
       "a head size known only at run time not implemented"},
  });
}

TEST_F(RefusalsOfMicrosoft, RotaryEmbedding) {
  broken({
      {"RotaryEmbedding", {"f 4 8", "= 0", "f 9 4", "f 9 4"}, {}, "an input of rank 2", "3 or 4"},
      {"RotaryEmbedding",
       {"f 1 4 12", "= 0", "f 9 4", "f 9 4"},
       {},
       "12 features for cos_cache of 4 columns",
       "a multiple of twice as many"},
      {"RotaryEmbedding",
       {"f 1 4 16", "= 0", "f 9 4", "f 9 4"},
       {M::integer("num_heads", 2), M::integer("rotary_embedding_dim", 4)},
       "cos_cache of 4 columns",
       "half of rotary_embedding_dim=4"},
  });
  broken({{"RotaryEmbedding",
           {"f 1 4 16", "= 0", "f 9 0", "f 9 0"},
           {},
           "cos_cache of 0 columns",
           "a positive number of 32 bits"}});
  unsupported({{"RotaryEmbedding",
                {"f 1 4 d", "= 0", "f 9 4", "f 9 4"},
                {},
                "a head size known only at run time not implemented"}});
}

TEST_F(RefusalsOfMicrosoft, Normalization) {
  const std::string ids = "i 1 3", table = "f 9 4", scale = "f 4", x = "f 1 2 2 4";
  auto groups = [](int64_t n, int64_t activation) {
    return std::vector<Attribute>{M::integer("groups", n), M::integer("activation", activation)};
  };
  broken({
      {"EmbedLayerNormalization",
       {"i 3", "", table, table, "", scale, scale},
       {},
       "input_ids of rank 1",
       "2"},
      {"EmbedLayerNormalization",
       {ids, ids, table, table, "", scale, scale},
       {},
       "one of segment_ids and segment_embedding",
       "both or neither"},
      {"GroupNorm", {"f 2 4", scale, scale}, groups(2, 0), "X of rank 2", "4"},
      {"GroupNorm", {x, scale, scale}, groups(0, 0), "groups=0", "1 or more"},
      {"GroupNorm", {x, scale, scale}, groups(2, 2), "activation=2", "0 or 1: none or SiLU"},
  });
  unsupported({{"SkipSimplifiedLayerNormalization",
                {"f 1 2 4", "f 1 2 4", scale},
                {},
                "output 1 ('y1') not implemented",
                "",
                1,
                2}});
}

TEST_F(RefusalsOfMicrosoft, Fused) {
  const std::string x = "f 1 8 8 4", w = "f 4 4 3 3";
  broken({
      {"FusedMatMul",
       {"f 2 3", "f 3 4"},
       {M::integer("transBatchA", 1)},
       "transBatch of an operand of rank 2",
       "3 or more: rows, batch, columns"},
      {"NhwcConv", {"f 1 4", w}, {}, "X of rank 2", "3 to 5"},
      {"NhwcConv", {x, w}, {M::integer("group", 0)}, "group=0", "1 or more"},
      {"NhwcConv",
       {x, w},
       {M::list("kernel_shape", {2, 2})},
       "kernel_shape=[2, 2]",
       "[3, 3], as the weight has it"},
  });
  unsupported({
      {"FusedConv",
       {"f 1 4 8 8", w},
       {M::text("activation", "Mish")},
       "activation=Mish not implemented"},
      {"FusedGemm",
       {"f 2 3", "f 3 4"},
       {M::text("activation", "Selu"), M::number("activation_gamma", 1)},
       "activation_gamma=1 not implemented"},
  });
}

TEST_F(RefusalsOfMicrosoft, Quantized) {
  broken({
      {"QLinearAveragePool",
       {"u 1 4", "f", "", "f", ""},
       {M::list("kernel_shape", {2})},
       "X of rank 2",
       "3 to 5"},
      {"QLinearConcat",
       {"f", "u", "u 2", "f"},
       {M::integer("axis", 0)},
       "4 operands",
       "2, and 3 for each part"},
      {"QLinearConv", {"u 1 4"}, {M::integer("channels_last", 1)}, "x of rank 2", "3 or more"},
      {"QGemm", {"u 1 2 3", "f", "u", "u 3 4", "f", "u"}, {}, "operand 0 of rank 3", "a matrix"},
  });
}

TEST_F(RefusalsOfMicrosoft, WeightsByBlocks) {
  auto sizes = [](std::vector<Attribute> more) {
    for (const auto& [name, value] : {std::pair("N", 4), std::pair("K", 16)}) {
      more.push_back(M::integer(name, value));
    }
    return more;
  };
  auto blocks_of = [](int64_t n) { return M::integer("block_size", n); };
  const std::vector<std::string> operands = {"f 2 16", "u 4 1 8", "f 4 1"};
  const char* op = "MatMulNBits";
  broken({
      {op, operands, sizes({}), "no attribute 'block_size'", "an int, which has no default"},
      {op, operands, sizes({blocks_of(0)}), "N=4, K=16, block_size=0",
       "positive numbers of 32 bits"},
      {op, operands, sizes({blocks_of(3)}), "block_size=3 with bits=4", "whole bytes"},
      {"MatMulBnb4",
       {"f 2 16", "u 32", "f 4"},
       sizes({blocks_of(16), M::integer("quant_type", 2)}),
       "quant_type=2",
       "0 or 1: FP4 or NF4"},
      {"MatMulBnb4",
       {"f 2 16", "u 32", "f 4"},
       sizes({blocks_of(-1), M::integer("quant_type", 0)}),
       "N=4, K=16, block_size=-1",
       "positive numbers of 32 bits"},
      {"GatherBlockQuantized",
       {"u 4 8", "i 2", "f 4 1"},
       {M::integer("gather_axis", 1), blocks_of(16)},
       "gather_axis the last of packed data",
       "another axis"},
      {"GatherBlockQuantized",
       {"u 4 8", "i 2", "f 4 1"},
       {blocks_of(-1)},
       "block_size=-1",
       "0 or more"},
  });
  unsupported({
      {op, operands, sizes({blocks_of(16), M::integer("bits", 3)}), "bits=3 not implemented"},
      {op, operands, sizes({blocks_of(16), M::integer("weight_prepacked", 1)}),
       "weight_prepacked=1 not implemented"},
  });
}

}  // namespace
}  // namespace tenon::onnx
