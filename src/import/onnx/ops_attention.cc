// Attention and related operators.

#include <cmath>

#include "import/onnx/attention_parts.h"
#include "import/onnx/loop_builder.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// The additive mask for a boolean tensor `allowed`.
Operand bias_of(NodeContext& cx, const Operand& allowed, DataType dtype) {
  return cx.op("where", {allowed, cx.scalar(dtype, 0), cx.scalar(dtype, -INFINITY)});
}

Operand plus(NodeContext& cx, const Operand& a, const Operand& b) {
  return a ? cx.add(a, b) : b;
}

// The sum of the masks for the scores [batch, heads, queries, keys]: the given mask, the causal
// mask, the window and the padding. Null if there are none.
Operand attention_bias(NodeContext& cx, DataType dtype, const Dim& queries, const Dim& keys,
                       const Dim& past) {
  Operand bias;
  if (cx.has(3)) {
    Operand mask = cx.in(3);
    bool boolean_mask = cx.dtype(mask).is_bool();
    int64_t rank = cx.rank(mask);
    Dim missing = keys - cx.dims(mask).back();
    if (!missing.is_const(0)) {  // keys beyond the mask are not attended to
      Dims before(static_cast<size_t>(rank), Dim(0)), after = before;
      after.back() = missing;
      Operand fill = boolean_mask ? cx.scalar(boolean, 0) : cx.scalar_like(mask, -INFINITY);
      // A mask of one column is broadcast instead.
      if (!cx.dims(mask).back().is_const(1)) {
        mask = cx.op(
            "pad", {mask, fill},
            attrs({{"before", graph::attr_dims(before)}, {"after", graph::attr_dims(after)}}));
      }
    }
    bias = boolean_mask ? bias_of(cx, mask, dtype) : cx.cast(mask, dtype);
  }
  bool causal = cx.attr_bool("is_causal", false);
  int64_t left = cx.attr_int("left_window_size", -1), right = cx.attr_int("right_window_size", -1);
  // Query i has position i + offset among the keys: after the cached keys, or at the end of the
  // keys in use.
  if (causal || left >= 0 || right >= 0) {
    Operand i = places(cx, queries, 2, 4), j = places(cx, keys, 3, 4);
    if (cx.has(6) && past.is_const(0)) {
      Operand used = cx.cast(cx.in(6), i64);
      Operand offset = cx.sub(used, cx.dim_scalar(queries));
      i = cx.add(i, cx.reshape(offset, {cx.dims(used)[0], 1, 1, 1}));
    } else if (!past.is_const(0)) {
      i = cx.add(i, cx.dim_scalar(past));
    }
    auto number = [&](int64_t v) { return cx.integer(v); };
    Operand allowed;
    auto also = [&](const Operand& condition) {
      allowed = allowed ? cx.op("logical_and", {allowed, condition}) : condition;
    };
    if (causal) also(cx.op("less_equal", {j, i}));
    if (left >= 0) also(cx.op("less_equal", {cx.sub(i, j), number(left)}));
    if (right >= 0) also(cx.op("less_equal", {cx.sub(j, i), number(right)}));
    bias = plus(cx, bias, bias_of(cx, allowed, dtype));
  }
  if (cx.has(6)) {
    Operand used = cx.cast(cx.in(6), i64);
    Operand end = cx.reshape(used, {cx.dims(used)[0], 1, 1, 1});
    bias = plus(cx, bias, bias_of(cx, cx.op("less", {places(cx, keys, 3, 4), end}), dtype));
  }
  return bias;
}

// Q, K, V, mask, past_key, past_value, keys in use -> Y, present_key, present_value, scores
Operands attention(NodeContext& cx) {
  Operand q = cx.in(0), k = cx.in(1), v = cx.in(2);
  int64_t q_heads = cx.attr_int("q_num_heads", 0), kv_heads = cx.attr_int("kv_num_heads", 0);
  bool flat = cx.rank(q) == 3;
  if (flat) {
    q = split_heads(cx, q, q_heads);
    k = split_heads(cx, k, kv_heads);
    v = split_heads(cx, v, kv_heads);
  }
  if (cx.rank(q) != 4 || cx.rank(k) != 4 || cx.rank(v) != 4)
    cx.invalid(cat("operands of rank ", cx.rank(q), ", ", cx.rank(k), " and ", cx.rank(v)),
               "all of rank 3, or all of rank 4");
  DataType dtype = cx.dtype(q);
  Dim past = 0;
  if (cx.has(4) != cx.has(5)) cx.invalid("one of past_key and past_value", "both or neither");
  if (cx.has(4)) {
    past = cx.dims(4).at(2);
    k = cx.concat({cx.in(4), k}, 2);
    v = cx.concat({cx.in(5), v}, 2);
  }
  Operand present_key = k, present_value = v;
  k = cx.cast(k, dtype);
  v = cx.cast(v, dtype);
  Dim queries = cx.dims(q)[2], keys = cx.dims(k)[2], size = cx.dims(q)[3];
  Operand bias = attention_bias(cx, dtype, queries, keys, past);

  auto heads = cx.dims(q)[1].as_const(), groups = cx.dims(k)[1].as_const();
  if (!heads || !groups) cx.unsupported("a number of heads known only at run time not implemented");
  if (*groups == 0 || *heads % *groups != 0)
    cx.invalid(cat(*heads, " heads of Q for ", *groups, " of K"), "a multiple");
  k = repeat_heads(cx, k, *heads / *groups);
  v = repeat_heads(cx, v, *heads / *groups);

  Operand factor;  // the square root of the scale, for both Q and K
  if (cx.attr_float("scale", 0) != 0) {
    factor = cx.scalar(dtype, std::sqrt(cx.attr_float("scale", 0)));
  } else if (auto n = size.as_const()) {
    factor = cx.scalar(dtype, std::sqrt(1 / std::sqrt(static_cast<double>(*n))));
  } else {
    Operand root = cx.op("sqrt", {cx.op("sqrt", {cx.cast(cx.dim_scalar(size), f32)})});
    factor = cx.cast(cx.op("reciprocal", {root}), dtype);
  }
  Operand scores =
      cx.op("matmul", {cx.mul(q, factor), cx.mul(cx.transpose(k, {0, 1, 3, 2}), factor)});
  Operand shown = scores;
  int64_t mode = cx.attr_int("qk_matmul_output_mode", 0);
  double softcap = cx.attr_float("softcap", 0);
  if (softcap > 0) {
    Operand cap = cx.scalar(dtype, softcap);
    scores = cx.mul(cx.op("tanh", {cx.div(scores, cap)}), cap);
  }
  if (mode == 1) shown = scores;
  if (mode < 0 || mode > 3) cx.invalid(cat("qk_matmul_output_mode=", mode), "0 to 3");
  if (bias) scores = cx.add(scores, bias);
  if (mode == 2) shown = scores;
  DataType precision = cx.attr_dtype("softmax_precision", dtype);
  Operand weights = cx.op("softmax", {cx.cast(scores, precision)}, attrs({{"axis", -1}}));
  if (bias) {
    // A query that may not attend to any key gives zeros instead of NaN.
    Operand top = cx.reduce("reduce_max", bias, {cx.rank(bias) - 1}, true);
    Operand nothing = cx.op("is_inf", {top}, attrs({{"detect_positive", false}}));
    weights = cx.op("where", {nothing, cx.scalar(precision, 0), weights});
  }
  weights = cx.cast(weights, dtype);
  if (mode == 3) shown = weights;
  Operand y = cx.op("matmul", {weights, v});
  if (flat) y = merge_heads(cx, y);
  return {y, present_key, present_value, shown};
}

// x [batch, heads, seq, size] or [batch, seq, heads * size], cos and sin caches, positions.
Operands rotary_embedding(NodeContext& cx) {
  Operand x = cx.in(0);
  bool flat = cx.rank(x) == 3;
  if (flat) x = split_heads(cx, x, cx.attr_int("num_heads", 0));
  cx.ignore("num_heads");
  auto size = cx.dims(x).at(3).as_const();
  if (!size) cx.unsupported("a head size known only at run time not implemented");
  int64_t rotated = cx.attr_int("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = *size;
  if (rotated < 0 || rotated > *size || rotated % 2 != 0)
    cx.invalid(cat("rotary_embedding_dim=", rotated), cat("an even size, at most ", *size));
  auto cache = [&](const Operand& table) {  // [batch, 1, seq, rotated / 2]
    Operand rows = table;
    if (cx.has(3)) rows = cx.op("gather", {table, cx.in(3)}, attrs({{"axis", 0}}));
    return cx.unsqueeze(rows, {1});
  };
  Operand y =
      rotate(cx, x, cache(cx.in(1)), cache(cx.in(2)), rotated, cx.attr_bool("interleaved", false));
  return {flat ? merge_heads(cx, y) : y};
}

// A causal depthwise convolution along time, and the inputs that the next call needs.
Operands causal_conv_with_state(NodeContext& cx) {
  Operand x = cx.in(0), w = cx.in(1);
  Dims d = cx.dims(x), wd = cx.dims(w);
  if (d.size() != 3 || wd.size() != 3)
    cx.invalid(cat("operands of rank ", d.size(), " and ", wd.size()), "rank 3");
  auto channels = d[1].as_const(), width = wd[2].as_const();
  if (!channels || !width) cx.unsupported("channels known only at run time not implemented");
  std::string activation = cx.attr_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    cx.invalid(cat("activation=", activation), "none, silu or swish");
  }
  Operand past = cx.has(3) ? cx.in(3) : cx.full(cx.dtype(x), 0, {d[0], *channels, *width - 1});
  Operand all = *width == 1 ? x : cx.concat({past, x}, 2);
  Operand y = cx.op("conv", {all, w, cx.opt(2)}, attrs({{"groups", *channels}}));
  if (activation != "none") y = cx.mul(y, cx.op("sigmoid", {y}));
  Operand rest = cx.slice(all, 2, d[2], *width - 1);
  return {y, rest};
}

// Attention with a state [batch, heads, d_k, d_v] instead of a cache, as a loop over time. Each
// step decays the state (gated), subtracts the state's prediction from the value (delta), adds key
// times value to the state, and reads it with the query. query, key, value, past_state, decay, beta
// -> output, present_state
Operands linear_attention(NodeContext& cx) {
  int64_t q_heads = cx.attr_int("q_num_heads"), kv_heads = cx.attr_int("kv_num_heads");
  cx.ignore("chunk_size");  // a hint
  std::string rule = cx.attr_string("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta";
  bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    cx.invalid(cat("update_rule=", rule), "linear, gated, delta or gated_delta");
  if (kv_heads <= 0 || q_heads <= 0 || q_heads % kv_heads != 0)
    cx.invalid(cat("q_num_heads=", q_heads, ", kv_num_heads=", kv_heads),
               "positive numbers, the first a multiple of the second");
  DataType dtype = cx.dtype(0);
  // Time first: [T, batch, heads, size], in f32.
  auto over_time = [&](const Operand& x, int64_t heads) {
    return cx.cast(cx.transpose(split_heads(cx, x, heads), {2, 0, 1, 3}), f32);
  };
  Operand q = over_time(cx.in(0), q_heads), k = over_time(cx.in(1), kv_heads),
          v = over_time(cx.in(2), kv_heads), decay, beta;
  // [T, batch, heads, 1 or d_k] and [T, batch, heads or 1, 1]
  if (gated) decay = over_time(cx.in(4), kv_heads);
  if (delta) {
    beta = over_time(cx.in(5), cx.dims(5).back().is_const(1) ? 1 : kv_heads);
  }
  Dims key = cx.dims(k), value = cx.dims(v);
  Dim steps = key[0], batch = key[1], d_k = key[3], d_v = value[3];
  Operand scale;
  if (double s = cx.attr_float("scale", 0); s != 0) {
    scale = cx.scalar(f32, s);
  } else {
    scale = cx.op("rsqrt", {cx.cast(cx.dim_scalar(d_k), f32)});
  }
  LoopSpec spec;
  spec.count = steps;
  spec.limit = cx.reshape(cx.op("shape_of", {k}, attrs({{"start", 0}, {"end", 1}})), {});
  spec.init = {cx.has(3) ? cx.cast(cx.in(3), f32) : cx.full(f32, 0, {batch, kv_heads, d_k, d_v})};
  spec.yields.resize(1);
  spec.step = [&](const Operand& t, const Operands& states) -> std::optional<LoopStep> {
    auto now = [&](const Operand& x) { return cx.op("gather", {x, t}, attrs({{"axis", 0}})); };
    Operand state = states[0], key_row = cx.unsqueeze(now(k), {2});  // [batch, heads, 1, d_k]
    Operand key_column = cx.transpose(key_row, {0, 1, 3, 2});
    Operand write = cx.unsqueeze(now(v), {2});  // [batch, heads, 1, d_v]
    if (gated) state = cx.mul(state, cx.op("exp", {cx.unsqueeze(now(decay), {3})}));
    if (delta) {
      Operand known = cx.op("matmul", {key_row, state});
      write = cx.mul(cx.unsqueeze(now(beta), {3}), cx.sub(write, known));
    }
    state = cx.add(state, cx.mul(key_column, write));
    Operand read =
        cx.op("matmul", {cx.unsqueeze(now(q), {2}), repeat_heads(cx, state, q_heads / kv_heads)});
    return LoopStep{{}, {state}, {cx.mul(cx.squeeze(read, {2}), scale)}};
  };
  LoopResult r = build_loop(cx, spec);
  Operand y = cx.transpose(r.yields[0], {1, 0, 2, 3});  // [batch, T, heads, d_v]
  y = cx.reshape(y, {batch, steps, d_v * q_heads});
  return {cx.cast(y, dtype), cx.cast(r.states[0], cx.has(3) ? cx.dtype(3) : dtype)};
}

}  // namespace

void register_attention(OpTable& t) {
  t.add("Attention", 23, attention);
  t.add("RotaryEmbedding", 23, rotary_embedding);
  t.add("LinearAttention", 27, linear_attention);
  t.add("CausalConvWithState", 27, causal_conv_with_state);
}

}  // namespace tenon::onnx
