// GroupQueryAttention and RotaryEmbedding of com.microsoft, as decoders of language models use
// them: each call appends to a cache of keys and values, and batch entries may differ in length.
// docs: ContribOperators.md of ONNX Runtime.

#include <cmath>

#include "import/onnx/attention_parts.h"
#include "import/onnx/key_value_cache.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// Operands of GroupQueryAttention.
enum : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,  // seqlens_k: tokens of each batch entry, minus 1
  kTotal,    // total_sequence_length: the most tokens of any
  kCosine,
  kSine,
  kPositions,
  kAttentionBias,
  kHeadSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQueryLengths
};

Tokens tokens_of(NodeContext& cx) {
  Tokens t;
  t.batch = cx.dims(kQuery).at(0);
  t.steps = cx.dims(kQuery).at(1);
  t.total = cx.elements(cx.reshape(cx.in(kTotal), {})).at(0);
  auto one_each = [&](size_t i) { return cx.reshape(cx.cast(cx.in(i), i64), {t.batch}); };
  t.lengths = cx.add(one_each(kLengths), cx.integer(1));
  const Operand steps = cx.dim_scalar(t.steps);
  const Operand fresh = cx.has(kQueryLengths) ? one_each(kQueryLengths) : steps;
  t.appended = cx.has(kQueryLengths) ? along(cx, fresh, 0, 2) : fresh;
  // Entries shorter than the query are padded.
  t.past = cx.op("maximum", {cx.sub(t.lengths, fresh), cx.integer(0)});
  const Operand most = cx.reduce("reduce_max", t.lengths, {0}, false);
  cx.b.check(graph::CheckKind::kLessEqual,
             cx.b.elements_of(cx.op("maximum", {most, cx.integer(0)})).at(0), t.total,
             "seqlens_k + 1 and total_sequence_length");
  return t;
}

// Query, key and value by heads; all are in the query if it is packed.
Projections grouped_projections(NodeContext& cx, int64_t heads, int64_t groups) {
  if (cx.rank(kQuery) != 3) cx.invalid(cat("query of rank ", cx.rank(kQuery)), "3");
  if (cx.has(kKey) != cx.has(kValue)) cx.invalid("one of key and value", "both or neither");
  if (!cx.has(kKey)) {
    const Operand all = split_heads(cx, cx.in(kQuery), heads + 2 * groups);
    return {cx.slice(all, 1, 0, heads), cx.slice(all, 1, heads, groups),
            cx.slice(all, 1, heads + groups, groups)};
  }
  Projections p{split_heads(cx, cx.in(kQuery), heads), split_heads(cx, cx.in(kKey), groups),
                split_heads(cx, cx.in(kValue), groups)};
  cx.b.check(graph::CheckKind::kEqual, cx.dims(p.k)[2], cx.dims(p.q)[2], "tokens of key and query");
  return p;
}

// Normalises each head of Q and K, if there are weights for that.
void normalize(NodeContext& cx, Projections& p) {
  const double both = cx.attr_float("qk_norm_epsilon", 1e-6);
  const double for_q = cx.attr_float("q_norm_epsilon", both);
  const double for_k = cx.attr_float("k_norm_epsilon", both);
  if (cx.has(kQueryNorm) != cx.has(kKeyNorm))
    cx.invalid("one of q_norm_weight and k_norm_weight", "both or neither");
  if (!cx.has(kQueryNorm)) return;
  auto normal = [&](const Operand& x, size_t weight, double epsilon) {
    return cx.op("rms_norm", {x, cx.in(weight)}, attrs({{"axis", -1}, {"epsilon", epsilon}}));
  };
  p.q = normal(p.q, kQueryNorm, for_q);
  p.k = normal(p.k, kKeyNorm, for_k);
}

// i64[batch, steps]: each token's place in its text. The first call uses one position only, that of
// the first token.
Operand positions_of(NodeContext& cx, const Tokens& t) {
  const Operand steps = places(cx, t.steps, 1, 2);
  if (!cx.has(kPositions)) return cx.add(along(cx, t.past, 0, 2), steps);
  const Operand given = cx.reshape(cx.in(kPositions), {t.batch, t.steps});
  if (t.steps == t.total) {
    return cx.expand(cx.add(cx.slice(cx.slice(given, 0, 0, 1), 1, 0, 1), steps),
                     {t.batch, t.steps});
  }
  const Operand is_first = cx.op("equal", {cx.dim_scalar(t.steps), cx.dim_scalar(t.total)});
  const Operand counted = cx.add(cx.slice(cx.slice(given, 0, 0, 1), 1, 0, 1), steps);
  return cx.op("where", {is_first, counted, given});
}

// How heads are rotated.
struct Rotation {
  Operand cosine, sine;  // [batch, 1, seq, half of what is rotated]
  int64_t rotated;
  bool interleaved;
};

// The columns of a table: half of what is rotated of each head.
int64_t half_width(NodeContext& cx, size_t table) {
  const auto columns = cx.dims(table).at(1).as_const();
  if (!columns) cx.unsupported("a head size known only at run time not implemented");
  if (*columns <= 0 || *columns > INT32_MAX)
    cx.invalid(cat("cos_cache of ", *columns, " columns"), "a positive number of 32 bits");
  return *columns;
}

// By the rows of two tables at `positions` [batch, seq]; the tables' width says how much of a head
// is rotated.
Rotation rotation_at(NodeContext& cx, size_t cosine, size_t sine, const Operand& positions,
                     const char* interleaved) {
  const int64_t half = half_width(cx, cosine);
  auto rows = [&](size_t table) {
    return cx.unsqueeze(cx.op("gather", {cx.in(table), positions}, attrs({{"axis", 0}})), {1});
  };
  return {rows(cosine), rows(sine), 2 * half, cx.attr_bool(interleaved, false)};
}

Operand rotated(NodeContext& cx, const Operand& x, const Rotation& r) {
  const DataType dtype = cx.dtype(x), wide = wide_type(dtype);
  const auto size = cx.dims(x)[3].as_const();
  if (!size) cx.unsupported("a head size known only at run time not implemented");
  if (r.rotated > *size)
    cx.invalid(cat("cos_cache of ", r.rotated / 2, " columns"),
               cat("at most ", *size / 2, ", half a head"));
  const Operand y = rotate(cx, cx.cast(x, wide), cx.cast(r.cosine, wide), cx.cast(r.sine, wide),
                           r.rotated, r.interleaved);
  return cx.cast(y, dtype);
}

// bool [batch or 1, 1, steps, columns]: which keys each query attends to.
Operand allowed_keys(NodeContext& cx, const Tokens& t, const CacheRows& rows) {
  const int64_t window = cx.attr_int("local_window_size", -1);
  if (!cx.attr_bool("causal", true)) {
    if (window > 0) cx.invalid(cat("local_window_size=", window, " with causal=0"), "-1");
    return cx.op("less", {rows.place, along(cx, t.lengths, 0, 4)});
  }
  const Operand query = cx.add(along(cx, t.past, 0, 4), places(cx, t.steps, 2, 4));
  Operand seen = cx.op("less_equal", {rows.place, query});
  if (rows.held) seen = cx.op("logical_and", {seen, rows.held});
  if (window <= 0) return seen;
  const Operand near = cx.op("less", {cx.sub(query, rows.place), cx.integer(window)});
  return cx.op("logical_and", {seen, near});
}

// The rows of the cache of this call and the next.
CacheRows rows_of(NodeContext& cx, const Tokens& t) {
  const Dim cached = cx.has(kPastKey) ? cx.dims(kPastKey).at(2) : Dim(0);
  if (!cx.attr_bool("sliding_window_cache", false)) return whole_cache(cx, t, cached);
  const int64_t window = cx.attr_int("local_window_size", -1);
  if (window <= 0)
    cx.invalid(cat("local_window_size=", window, " with sliding_window_cache=1"), "1 or more");
  if (!cx.has(kPastKey)) cx.invalid("no past_key with sliding_window_cache=1", "a past_key");
  // Both have a column for each token of the text.
  if (cx.has(kAttentionBias))
    cx.unsupported("attention_bias with sliding_window_cache=1 not implemented");
  if (cx.attr_int("qk_output", 0) != 0)
    cx.unsupported("qk_output with sliding_window_cache=1 not implemented");
  return sliding_cache(cx, t, cached, window);
}

// Softmax over the last axis with one more score in the denominator: 0, or each head's own.
Operand softmax_with_sink(NodeContext& cx, const Operand& scores, int64_t heads) {
  const bool smooth = cx.attr_int("smooth_softmax", 0) == 1;
  auto softmax = [&](const Operand& x) { return cx.op("softmax", {x}, attrs({{"axis", -1}})); };
  if (!smooth && !cx.has(kHeadSink)) return softmax(scores);
  const DataType dtype = cx.dtype(scores);
  const Operand sink = cx.has(kHeadSink)
                           ? cx.reshape(cx.cast(cx.in(kHeadSink), dtype), {1, heads, 1, 1})
                           : cx.full(dtype, 0, {1, heads, 1, 1});
  Dims shape = cx.dims(scores);
  const Dim columns = shape[3];
  shape[3] = 1;
  return cx.slice(softmax(cx.concat({scores, cx.expand(sink, shape)}, 3)), 3, 0, columns);
}

// How the keys or values of the cache are stored.
Storage storage_of(NodeContext& cx, const char* type_name, size_t scale, size_t past) {
  const std::string type = cx.attr_string(type_name, "NONE");
  const int64_t bits = cx.attr_int("kv_cache_bit_width", 8);
  if (type == "NONE") return {};
  if (type != "PER_TENSOR" && type != "PER_CHANNEL")
    cx.invalid(cat(type_name, "=", type), "NONE, PER_TENSOR or PER_CHANNEL");
  if (bits != 4 && bits != 8) cx.invalid(cat("kv_cache_bit_width=", bits), "4 or 8");
  const DataType dtype = bits == 8 ? i8 : u8;
  if (cx.has(past) && cx.dtype(past) != dtype)
    cx.unsupported(
        cat("a cache of ", cx.dtype(past), " with kv_cache_bit_width=", bits, " not implemented"));
  const bool one = product(cx.dims(scale)).is_const(1);
  return {bits, one ? cx.reshape(cx.in(scale), {}) : cx.in(scale)};
}

struct Weights {
  Operand weights;  // of the values
  Operand shown;    // the fourth result
};

Weights weights_of(NodeContext& cx, const Operand& q, const Operand& k, const Operand& allowed,
                   int64_t heads) {
  const DataType dtype = cx.dtype(q);
  Operand scores = attention_scores(cx, q, k, cx.attr_float("scale", 0));
  if (const double softcap = cx.attr_float("softcap", 0); softcap > 0) {
    const Operand cap = cx.scalar(dtype, softcap);
    scores = cx.mul(cx.op("tanh", {cx.div(scores, cap)}), cap);
  }
  if (cx.has(kAttentionBias)) {
    const Operand bias = cx.cast(cx.in(kAttentionBias), dtype);
    scores = cx.add(scores, cx.slice(bias, 3, 0, cx.dims(scores)[3]));
  }
  const int64_t mode = cx.attr_int("qk_output", 0);
  if (mode < 0 || mode > 2) cx.invalid(cat("qk_output=", mode), "0 to 2");
  Weights w;
  if (mode == 1) w.shown = cx.op("where", {allowed, scores, cx.scalar(dtype, 0)});
  const Operand masked = cx.op("where", {allowed, scores, cx.scalar(dtype, -INFINITY)});
  w.weights = softmax_with_sink(cx, masked, heads);
  if (mode == 2) w.shown = w.weights;
  return w;
}

// -> output, present_key, present_value, scores or weights
Operands group_query_attention(NodeContext& cx) {
  const int64_t heads = cx.attr_int("num_heads"), groups = cx.attr_int("kv_num_heads");
  if (heads <= 0 || groups <= 0 || heads > INT32_MAX || heads % groups != 0)
    cx.invalid(cat("num_heads=", heads, ", kv_num_heads=", groups),
               "positive numbers of 32 bits, the first a multiple of the second");
  if (cx.has(kPastKey) != cx.has(kPastValue))
    cx.invalid("one of past_key and past_value", "both or neither");
  Projections p = grouped_projections(cx, heads, groups);
  const Tokens t = tokens_of(cx);
  normalize(cx, p);
  if (cx.attr_bool("do_rotary", false)) {
    const Rotation r = rotation_at(cx, kCosine, kSine, positions_of(cx, t), "rotary_interleaved");
    p.q = rotated(cx, p.q, r);
    p.k = rotated(cx, p.k, r);
  }
  cx.ignore("rotary_interleaved");
  const CacheRows rows = rows_of(cx, t);
  const Storage key_storage = storage_of(cx, "k_quant_type", kKeyScale, kPastKey);
  const Storage value_storage = storage_of(cx, "v_quant_type", kValueScale, kPastValue);
  const Cache keys = update_cache(cx, cx.opt(kPastKey), stored(cx, p.k, key_storage), rows);
  const Cache values = update_cache(cx, cx.opt(kPastValue), stored(cx, p.v, value_storage), rows);
  const DataType dtype = cx.dtype(kQuery), wide = wide_type(dtype);
  const Weights w =
      weights_of(cx, cx.cast(p.q, wide), restored(cx, keys.attended, key_storage, wide),
                 allowed_keys(cx, t, rows), heads);
  const Operand y = merge_heads(
      cx, weighted_values(cx, w.weights, restored(cx, values.attended, value_storage, wide)));
  return {cx.cast(y, dtype), keys.present, values.present,
          w.shown ? cx.cast(w.shown, dtype) : Operand()};
}

// Operands of RotaryEmbedding.
enum : size_t { kInput, kPositionIds, kCosineTable, kSineTable };

// How many heads the last axis of an operand of rank 3 has: the tables are for whole heads unless
// rotary_embedding_dim says otherwise.
int64_t heads_of_flat(NodeContext& cx) {
  const int64_t heads = cx.attr_int("num_heads", 0);
  if (heads > 0) return heads;
  const auto features = cx.dims(kInput)[2].as_const();
  if (!features) cx.unsupported("a head size known only at run time not implemented");
  const int64_t half = half_width(cx, kCosineTable);
  if (*features % (2 * half) != 0)
    cx.invalid(cat(*features, " features for cos_cache of ", half, " columns"),
               "a multiple of twice as many");
  return *features / (2 * half);
}

// x [batch, heads, seq, size] or [batch, seq, heads * size]; positions [batch, seq], or [1]: of the
// first token.
Operands rotary_embedding(NodeContext& cx) {
  cx.ignore("is_packed_batching");  // has no effect on results
  cx.ignore("scale");               // likewise in ONNX Runtime
  const bool flat = cx.rank(kInput) == 3;
  if (!flat && cx.rank(kInput) != 4)
    cx.invalid(cat("an input of rank ", cx.rank(kInput)), "3 or 4");
  const int64_t size = cx.attr_int("rotary_embedding_dim", 0);
  if (size > 0 && !cx.dims(kCosineTable).at(1).is_const(size / 2))
    cx.invalid(cat("cos_cache of ", cx.dims(kCosineTable)[1], " columns"),
               cat("half of rotary_embedding_dim=", size));
  const Operand x = flat ? split_heads(cx, cx.in(kInput), heads_of_flat(cx)) : cx.in(kInput);
  cx.ignore("num_heads");
  const Dims d = cx.dims(x);
  Operand positions = cx.in(kPositionIds);
  if (cx.rank(positions) < 2) {
    const Operand first = cx.reshape(cx.cast(positions, i64), {1, 1});
    positions = cx.expand(cx.add(first, places(cx, d[2], 1, 2)), {d[0], d[2]});
  }
  const Operand y =
      rotated(cx, x, rotation_at(cx, kCosineTable, kSineTable, positions, "interleaved"));
  return {flat ? merge_heads(cx, y) : y};
}

}  // namespace

void register_microsoft_decoder(OpTable& t) {
  t.add("GroupQueryAttention", 1, group_query_attention, kMicrosoft);
  t.add("RotaryEmbedding", 1, rotary_embedding, kMicrosoft);
}

}  // namespace tenon::onnx
