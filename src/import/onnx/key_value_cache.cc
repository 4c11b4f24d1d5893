#include "import/onnx/key_value_cache.h"

#include "import/onnx/attention_parts.h"
#include "import/onnx/packed_bits.h"

namespace tenon::onnx {

using graph::attrs;

Operand along(NodeContext& cx, const Operand& x, size_t axis, size_t rank) {
  Dims shape(rank, Dim(1));
  shape[axis] = cx.dims(x)[0];
  return cx.reshape(x, shape);
}

CacheRows whole_cache(NodeContext& cx, const Tokens& t, const Dim& cached) {
  const Operand most = cx.reduce("reduce_max", t.past, {0}, false);
  cx.b.check(graph::CheckKind::kLessEqual,
             cx.b.elements_of(cx.op("maximum", {most, cx.integer(0)})).at(0), cached,
             "tokens before the query and rows of past_key");
  CacheRows r;
  r.cached = cached;
  r.capacity = max(t.total, cached);
  const Operand place = places(cx, r.capacity, 1, 2), end = along(cx, t.past, 0, 2);
  const Operand is_past = cx.op("less", {place, end}), step = cx.sub(place, end);
  r.exists = cx.op("logical_or", {is_past, cx.op("less", {step, t.appended})});
  const Operand from = cx.op("where", {is_past, place, cx.add(step, cx.dim_scalar(cached))});
  r.from = cx.op("where", {r.exists, from, cx.integer(0)});
  r.columns = t.total;
  r.place = places(cx, t.total, 3, 4);
  return r;
}

namespace {

// How many of `count` [batch] tokens a sliding cache holds.
Operand resident(NodeContext& cx, const Operand& count, const Dim& cached, const Dim& window) {
  const Dim group = cached - window + 1;
  const Operand over = cx.op("maximum", {cx.sub(count, cx.dim_scalar(cached)), cx.integer(0)});
  const Operand groups =
      cx.op("floor_div", {cx.add(over, cx.dim_scalar(group - 1)), cx.dim_scalar(group)});
  return cx.sub(count, cx.mul(groups, cx.dim_scalar(group)));
}

}  // namespace

CacheRows sliding_cache(NodeContext& cx, const Tokens& t, const Dim& cached, int64_t window) {
  cx.b.check(graph::CheckKind::kLessEqual, window, cached,
             "local_window_size and rows of past_key");
  CacheRows r;
  r.cached = cached;
  r.capacity = cached;
  const Operand held_before = resident(cx, t.past, cached, window);
  const Operand held_after = resident(cx, t.lengths, cached, window);
  const Operand first_before = cx.sub(t.past, held_before);  // in the text
  const Operand first_after = cx.sub(t.lengths, held_after);

  const Operand row = places(cx, cached, 1, 2), end = along(cx, t.past, 0, 2);
  const Operand place = cx.add(row, along(cx, first_after, 0, 2));
  r.exists = cx.op("less", {row, along(cx, held_after, 0, 2)});
  const Operand of_past = cx.sub(place, along(cx, first_before, 0, 2));
  const Operand of_new = cx.add(cx.sub(place, end), cx.dim_scalar(cached));
  const Operand from = cx.op("where", {cx.op("less", {place, end}), of_past, of_new});
  r.from = cx.op("where", {r.exists, from, cx.integer(0)});

  // Queries attend to the rows before and the new ones, as some of those are dropped after the
  // call.
  r.columns = cached + t.steps;
  const Operand past_row = places(cx, cached, 3, 4), new_row = places(cx, t.steps, 3, 4);
  const Operand past_places = cx.add(past_row, along(cx, first_before, 0, 4));
  r.place = cx.concat({past_places, cx.add(new_row, along(cx, t.past, 0, 4))}, 3);
  const Operand past_held = cx.op("less", {past_row, along(cx, held_before, 0, 4)});
  r.held = cx.concat({past_held, cx.full(boolean, 1, {t.batch, 1, 1, t.steps})}, 3);
  return r;
}

Cache update_cache(NodeContext& cx, const Operand& past, const Operand& now, const CacheRows& r) {
  const Dims d = cx.dims(now);
  Operand all = now;
  if (past) all = cx.concat({with_sizes(cx, past, {d[0], d[1], r.cached, d[3]}), now}, 2);
  // Rows of all entries and heads lie one after the other.
  const Dim rows = r.cached + d[2];
  const Operand flat = cx.reshape(all, {d[0] * d[1] * rows, d[3]});
  const Operand first =
      cx.mul(cx.reshape(places(cx, d[0] * d[1], 0, 1), {d[0], d[1], 1}), cx.dim_scalar(rows));
  const Operand picked =
      cx.op("gather", {flat, cx.add(first, cx.unsqueeze(r.from, {1}))}, attrs({{"axis", 0}}));
  const Operand present = cx.op(
      "where", {cx.reshape(r.exists, {d[0], 1, r.capacity, 1}), picked, cx.scalar_like(picked, 0)});
  return {r.held ? all : cx.slice(present, 2, 0, r.columns), present};
}

Operand stored(NodeContext& cx, const Operand& x, const Storage& s) {
  if (s.bits == 0) return x;
  const Operand number = cx.op("round", {cx.div(cx.cast(x, f32), cx.cast(s.scale, f32))});
  if (s.bits == 8) return cx.cast(number, i8);  // saturates
  const Operand clipped = cx.op("clip", {number, cx.scalar(f32, -8), cx.scalar(f32, 7)});
  return pack_4_bits(cx, cx.cast(cx.add(clipped, cx.scalar(f32, 8)), u8));
}

Operand restored(NodeContext& cx, const Operand& cache, const Storage& s, DataType dtype) {
  if (s.bits == 0) return cx.cast(cache, dtype);
  Operand number = cx.cast(unpack_bits(cx, cache, s.bits), dtype);
  if (s.bits == 4) number = cx.sub(number, cx.scalar(dtype, 8));
  return cx.mul(number, cx.cast(s.scale, dtype));
}

}  // namespace tenon::onnx
