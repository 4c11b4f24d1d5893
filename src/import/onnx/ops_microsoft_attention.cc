// Attention, QAttention and MultiHeadAttention of com.microsoft, where the projections' bias, the
// padding and the cache are operands. docs: ContribOperators.md of ONNX Runtime.

#include <limits>

#include "import/onnx/attention_parts.h"

namespace tenon::onnx {

namespace {

// Keys or values with those of earlier calls before them.
struct Cached {
  Operand all;      // [batch, heads, keys, size]
  Operand present;  // the result for the next call
};

// The cache with the sizes of the new rows, but for their number.
Operand cache_of(NodeContext& cx, const Operand& past, const Operand& now) {
  Dims sizes = cx.dims(now);
  sizes[2] = cx.dims(past).at(2);
  return with_sizes(cx, past, sizes);
}

Cached append(NodeContext& cx, const Operand& past, const Operand& now) {
  const Operand all = past ? cx.concat({cache_of(cx, past, now), now}, 2) : now;
  return {all, all};
}

// The same where `past` has room for more than the `used` rows that are in use; the result has as
// many rows.
Cached append_within(NodeContext& cx, const Operand& cache, const Dim& used, const Operand& now) {
  const Operand past = cache_of(cx, cache, now);
  const Dim keys = used + cx.dims(now).at(2), room = cx.dims(past).at(2);
  cx.b.check(graph::CheckKind::kLessEqual, keys, room, "rows of the cache, past and new");
  const Operand all = cx.concat({cx.slice(past, 2, 0, used), now}, 2);
  return {all, cx.concat({all, cx.slice(past, 2, keys, room - keys)}, 2)};
}

// The number of rows in use that an operand with one element gives.
Dim used_rows(NodeContext& cx, size_t i) {
  return cx.elements(cx.reshape(cx.in(i), {})).at(0);
}

// What is known of the scores [batch, heads, queries, keys] when they are masked.
struct Mask {
  Dim batch, queries, past, keys;
  DataType dtype;
};

// Integers of each batch entry, to compare with the keys' places.
Operand bound_of(NodeContext& cx, const Operand& each) {
  return cx.reshape(each, {cx.dims(each)[0], 1, 1, 1});
}

// bool: whether keys are no padding, for a mask of rank 1: each entry's end, and perhaps its start,
// among the keys. With 3 * batch + 2 elements, the ends are followed by what packing needs.
Operand visible_by_ends(NodeContext& cx, const Operand& mask, const Mask& m) {
  const Dim given = cx.dims(mask)[0];
  const Operand key = places(cx, m.keys, 3, 4);
  Operand before_end = cx.op("less", {key, bound_of(cx, cx.slice(mask, 0, 0, m.batch))});
  if (given == m.batch || given == m.batch * 3 + 2) return before_end;
  cx.b.check(graph::CheckKind::kEqual,
             (given - m.batch) * (given - m.batch * 2) * (given - m.batch * 3 - 2), 0,
             "a mask of rank 1 has batch, 2 * batch or 3 * batch + 2 elements");
  const Operand second = cx.add(places(cx, m.batch, 0, 1), cx.dim_scalar(m.batch));
  const Operand last = cx.dim_scalar(given - 1);
  const Operand starts =
      cx.op("gather", {mask, cx.op("minimum", {second, last})}, graph::attrs({{"axis", 0}}));
  const Operand has_starts = cx.op("equal", {cx.dim_scalar(given), cx.dim_scalar(m.batch * 2)});
  const Operand first = cx.op("where", {has_starts, starts, cx.integer(0)});
  return cx.op("logical_and", {before_end, cx.op("greater_equal", {key, bound_of(cx, first)})});
}

// bool, to be broadcast to the scores: whether keys are no padding. Null if all are none.
Operand visible_keys(NodeContext& cx, size_t i, const Mask& m) {
  if (!cx.has(i)) return {};
  Operand mask = cx.cast(cx.in(i), i64);
  const Dims d = cx.dims(mask);
  if (d.size() == 1) return visible_by_ends(cx, mask, m);
  if (d.size() == 2) {
    // A mask of one column stands for none, or is that of the only key.
    if (d[1].is_const(1)) return {};
    mask = cx.unsqueeze(with_sizes(cx, mask, {m.batch, m.keys}), {1, 2});
  } else if (d.size() == 3) {
    mask = cx.unsqueeze(with_sizes(cx, mask, {m.batch, m.queries, m.keys}), {1});
  } else if (d.size() == 4) {  // of all queries and keys that the model allows
    mask = with_sizes(cx, mask, {m.batch, 1, d[2], d[3]});
    mask = cx.slice(cx.slice(mask, 2, m.past, m.queries), 3, 0, m.keys);
  } else {
    cx.invalid(cat("a mask of rank ", d.size()), "1 to 4");
  }
  return cx.op("greater", {mask, cx.integer(0)});
}

// scale q k^T with all that is added to it: the attention bias, mask_filter_value for padding, and
// the least number for later tokens, which softmax turns into zeros.
Operand masked_scores(NodeContext& cx, const Operand& q, const Operand& k, const Mask& m,
                      size_t mask, size_t attention_bias) {
  Operand scores = attention_scores(cx, q, k, cx.attr_float("scale", 0));
  if (cx.has(attention_bias)) scores = cx.add(scores, cx.cast(cx.in(attention_bias), m.dtype));
  const double filter = cx.attr_float("mask_filter_value", -10000);
  if (const Operand visible = visible_keys(cx, mask, m)) {
    scores = cx.add(scores,
                    cx.op("where", {visible, cx.scalar(m.dtype, 0), cx.scalar(m.dtype, filter)}));
  }
  if (!cx.attr_bool("unidirectional", false)) return scores;
  cx.b.check(graph::CheckKind::kEqual, m.past + m.queries, m.keys,
             "queries and new keys, for unidirectional=1");
  const Operand now = cx.add(places(cx, m.queries, 2, 4), cx.dim_scalar(m.past));
  const Operand allowed = cx.op("less_equal", {places(cx, m.keys, 3, 4), now});
  return cx.op("where",
               {allowed, scores, cx.scalar(m.dtype, std::numeric_limits<float>::lowest())});
}

struct Attended {
  Operand y, scores;
};

Attended attend(NodeContext& cx, const Operand& q, const Operand& k, const Operand& v,
                const Dim& past, size_t mask, size_t attention_bias) {
  const DataType dtype = cx.dtype(q), wide = wide_type(dtype);
  const Dims queries = cx.dims(q);
  const Mask m{queries[0], queries[2], past, cx.dims(k)[2], wide};
  const Operand scores =
      masked_scores(cx, cx.cast(q, wide), cx.cast(k, wide), m, mask, attention_bias);
  const Operand weights = cx.op("softmax", {scores}, graph::attrs({{"axis", -1}}));
  const Operand y = merge_heads(cx, weighted_values(cx, weights, cx.cast(v, wide)));
  return {cx.cast(y, dtype), cx.cast(scores, dtype)};
}

int64_t number_of_heads(NodeContext& cx) {
  const int64_t heads = cx.attr_int("num_heads");
  if (heads <= 0) cx.invalid(cat("num_heads=", heads), "1 or more");
  return heads;
}

// Part of the last axis, by heads.
Operand heads_from(NodeContext& cx, const Operand& x, const Dim& start, const Dim& size,
                   int64_t heads) {
  return split_heads(cx, cx.slice(x, cx.rank(x) - 1, start, size), heads);
}

// The widths of Q, K and V in the last axis of their projection.
Dims projected_sizes(NodeContext& cx, const Dim& total, int64_t heads) {
  const Ints given = cx.attr_ints("qkv_hidden_sizes");
  if (given.empty()) return Dims(3, divide({total}, {3}));
  if (given.size() != 3)
    cx.invalid(cat("qkv_hidden_sizes has ", given.size(), " entries"), "3: of Q, K and V");
  for (int64_t size : given) {
    if (size <= 0 || size % heads != 0)
      cx.invalid(cat("qkv_hidden_sizes holds ", size),
                 cat("positive multiples of num_heads=", heads));
  }
  return Dims(given.begin(), given.end());
}

// Half of the cache [2, batch, heads, rows, size].
Operand half_of(NodeContext& cx, const Operand& past, int64_t which) {
  if (cx.rank(past) != 5) cx.invalid(cat("past of rank ", cx.rank(past)), "5");
  return cx.squeeze(cx.slice(past, 0, which, 1), {0});
}

// Where Attention and QAttention have the operands after those of the projections.
struct Places {
  size_t mask, past, attention_bias, used;
};

// projected: [batch, seq, q + k + v] -> output, present
Operands self_attention(NodeContext& cx, const Operand& projected, const Places& at) {
  if (cx.attr_bool("do_rotary", false)) cx.unsupported("do_rotary=1 not implemented");
  cx.ignore("rotary_embedding_dim");
  if (cx.rank(projected) != 3)
    cx.invalid(cat("an input of rank ", cx.rank(0)), "3: batch, sequence and features");
  const int64_t heads = number_of_heads(cx);
  const Dims sizes = projected_sizes(cx, cx.dims(projected)[2], heads);
  const Operand q = heads_from(cx, projected, 0, sizes[0], heads);
  Cached k, v;
  k.all = heads_from(cx, projected, sizes[0], sizes[1], heads);
  v.all = heads_from(cx, projected, sizes[0] + sizes[1], sizes[2], heads);
  Operand past_keys, past_values;
  if (cx.has(at.past)) {
    past_keys = half_of(cx, cx.in(at.past), 0);
    past_values = half_of(cx, cx.in(at.past), 1);
  }
  Dim past = past_keys ? cx.dims(past_keys)[2] : Dim(0);
  if (cx.attr_bool("past_present_share_buffer", false) && past_keys) {
    past = used_rows(cx, at.used);
    k = append_within(cx, past_keys, past, k.all);
    v = append_within(cx, past_values, past, v.all);
  } else {
    k = append(cx, past_keys, k.all);
    v = append(cx, past_values, v.all);
  }
  Operands out = {attend(cx, q, k.all, v.all, past, at.mask, at.attention_bias).y};
  if (cx.wants(1)) {
    out.push_back(cx.concat({cx.unsqueeze(k.present, {0}), cx.unsqueeze(v.present, {0})}, 0));
  }
  return out;
}

Operands attention(NodeContext& cx) {
  enum : size_t { kInput, kWeights, kBias, kMaskIndex, kPast, kAttentionBias, kPastLength };
  Operand projected = cx.op("matmul", {cx.in(kInput), cx.in(kWeights)});
  if (cx.has(kBias)) projected = cx.add(projected, cx.in(kBias));
  return self_attention(cx, projected, {kMaskIndex, kPast, kAttentionBias, kPastLength});
}

Operands quantized_attention(NodeContext& cx) {
  enum : size_t {
    kInput,
    kWeights,
    kBias,
    kInputScale,
    kWeightScale,
    kMaskIndex,
    kInputZero,
    kWeightZero,
    kPast
  };
  const DataType dtype = cx.dtype(kBias);
  const Operand product = cx.as_onnx("MatMulInteger", {cx.in(kInput), cx.in(kWeights),
                                                       cx.opt(kInputZero), cx.opt(kWeightZero)})
                              .at(0);
  const Operand scale = cx.mul(cx.cast(cx.in(kInputScale), f32), cx.cast(cx.in(kWeightScale), f32));
  const Operand y = cx.add(cx.mul(cx.cast(product, f32), scale), cx.cast(cx.in(kBias), f32));
  constexpr size_t kNone = SIZE_MAX;
  return self_attention(cx, cx.cast(y, dtype), {kMaskIndex, kPast, kNone, kNone});
}

// ---- MultiHeadAttention ----

// Its operands.
enum : size_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kPaddingMask,
  kAttentionBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kCacheIndirection
};

// x [batch, seq, heads, parts, size]: one of the parts, by heads.
Operand packed_part(NodeContext& cx, const Operand& x, int64_t part) {
  return cx.transpose(cx.squeeze(cx.slice(x, 3, part, 1), {3}), {0, 2, 1, 3});
}

void require_parts(NodeContext& cx, size_t i, int64_t heads, int64_t parts) {
  const Dims d = cx.dims(i);
  if (d[2].is_const(heads) && d[3].is_const(parts)) return;
  cx.invalid(cat("operand ", i, " of shape [..., ", d[2], ", ", d[3], ", ", d[4], "]"),
             cat("[..., ", heads, ", ", parts, ", size]: num_heads and what is packed"));
}

// Q, K and V by heads: packed in one operand or two, or apart, K and V perhaps by heads already.
Projections unpacked_projections(NodeContext& cx, int64_t heads) {
  if (cx.rank(kQuery) == 5) {
    require_parts(cx, kQuery, heads, 3);
    if (cx.has(kKey)) cx.invalid("key beside a packed query", "no key");
    const Operand x = cx.in(kQuery);
    return {packed_part(cx, x, 0), packed_part(cx, x, 1), packed_part(cx, x, 2)};
  }
  if (cx.rank(kQuery) != 3) cx.invalid(cat("query of rank ", cx.rank(kQuery)), "3, or 5 if packed");
  Projections p{split_heads(cx, cx.in(kQuery), heads), {}, {}};
  const int64_t rank = cx.rank(kKey);
  if (rank == 5) {
    require_parts(cx, kKey, heads, 2);
    if (cx.has(kValue)) cx.invalid("value beside a packed key", "no value");
    p.k = packed_part(cx, cx.in(kKey), 0);
    p.v = packed_part(cx, cx.in(kKey), 1);
  } else if ((rank == 3 || rank == 4) && cx.rank(kValue) == rank) {
    p.k = rank == 4 ? cx.in(kKey) : split_heads(cx, cx.in(kKey), heads);
    p.v = rank == 4 ? cx.in(kValue) : split_heads(cx, cx.in(kValue), heads);
  } else {
    cx.invalid(cat("key and value of rank ", rank, " and ", cx.rank(kValue)),
               "both of rank 3, or both of rank 4");
  }
  return p;
}

// Adds the parts of the projections' bias [q + k + v]. Those of K and V that are by heads already
// have been added.
void add_bias(NodeContext& cx, Projections& p, bool only_query) {
  if (!cx.has(kBias)) return;
  const Operand bias = cx.in(kBias);
  if (cx.rank(bias) != 1) cx.invalid(cat("bias of rank ", cx.rank(bias)), "1");
  Dim start = 0;
  auto next = [&](const Operand& x) {
    const Dims d = cx.dims(x);
    const Operand part = cx.slice(bias, 0, start, d[1] * d[3]);
    start = start + d[1] * d[3];
    return cx.add(x, cx.reshape(part, {1, d[1], 1, d[3]}));
  };
  p.q = next(p.q);
  if (only_query) return;
  p.k = next(p.k);
  p.v = next(p.v);
  cx.b.check(graph::CheckKind::kEqual, start, cx.dims(bias)[0], "elements of the bias");
}

// -> output, present_key, present_value, scores
Operands multi_head_attention(NodeContext& cx) {
  if (cx.has(kCacheIndirection)) cx.unsupported("cache_indirection not implemented");
  if (cx.has(kPastKey) != cx.has(kPastValue))
    cx.invalid("one of past_key and past_value", "both or neither");
  const int64_t heads = number_of_heads(cx);
  Projections p = unpacked_projections(cx, heads);
  const bool by_heads = cx.has(kKey) && cx.rank(kKey) == 4;
  if (by_heads && cx.has(kPastKey)) cx.invalid("past_key beside a key of rank 4", "no past_key");
  add_bias(cx, p, by_heads);
  Dim past = cx.has(kPastKey) ? cx.dims(kPastKey).at(2) : Dim(0);
  Cached k, v;
  if (cx.has(kPastKey) && cx.has(kPastLength)) {
    past = used_rows(cx, kPastLength);
    k = append_within(cx, cx.in(kPastKey), past, p.k);
    v = append_within(cx, cx.in(kPastValue), past, p.v);
  } else {
    k = append(cx, cx.opt(kPastKey), p.k);
    v = append(cx, cx.opt(kPastValue), p.v);
  }
  const Attended result = attend(cx, p.q, k.all, v.all, past, kPaddingMask, kAttentionBias);
  return {result.y, k.present, v.present, result.scores};
}

}  // namespace

void register_microsoft_attention(OpTable& t) {
  t.add("Attention", 1, attention, kMicrosoft);
  t.add("QAttention", 1, quantized_attention, kMicrosoft);
  t.add("MultiHeadAttention", 1, multi_head_attention, kMicrosoft);
}

}  // namespace tenon::onnx
