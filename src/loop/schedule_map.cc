// Elementwise work, broadcasts and data movement: vectors along the last axis; blocks if an operand
// crosses it.
#include <numeric>

#include "loop/affine.h"
#include "loop/axis_parts.h"
#include "loop/nest.h"
#include "support/rounding.h"

namespace tenon::loop {
namespace {

constexpr int64_t kBlock = 8192;  // minimum number of elements per task of a flat loop
constexpr int64_t kTile = 8;      // of a transposition: rows and columns
// Written out for a period: vectors, and nodes of their expressions.
constexpr int64_t kMostVectors = 8, kMostNodes = 1 << 12;

// The contiguous axis of a load that crosses the last axis; -1 if there is none.
int crossing_axis(const Work& w) {
  const Axis& x = w.axes.back();
  for (const Load* l : loads_in(w.body)) {
    if (l->indices.empty()) continue;
    auto c = coefficient(l->indices[0], x.var);
    if (!c || c->is_const(0) || c->is_const(1)) continue;
    for (size_t i = w.axes.size() - 1; i-- > 0;) {
      auto along = coefficient(l->indices[0], w.axes[i].var);
      if (along && along->is_const(1)) return static_cast<int>(i);
    }
  }
  return -1;
}

// Rows [begin, end) of the crossing axis `y` in tiles of kTile x kTile, whose lines stay in the
// cache while both operands are traversed: those of the tile `ty`. The last axis is unrolled; its
// remainder is a plain loop.
StmtRef row_of_tiles(const Axis& x, const Axis& y, const ExprRef& ty, const ExprRef& begin,
                     const ExprRef& end, const StmtRef& element) {
  auto tx = var("tile_x", i64);
  ExprRef ex = dim_value(x.extent);
  ExprRef y0 = sum(begin, scaled(ty, kTile)), x0 = scaled(tx, kTile);
  ExprRef rows = smaller(index(kTile), difference(end, y0));
  ExprRef columns = quotient(ex, index(kTile));
  StmtRef whole = for_loop(y.var, y0, rows, ForKind::kSerial,
                           for_loop(x.var, x0, index(kTile), ForKind::kUnrolled, element));
  ExprRef done = scaled(columns, kTile);
  StmtRef rest = for_loop(y.var, y0, rows, ForKind::kSerial,
                          for_loop(x.var, done, difference(ex, done), ForKind::kSerial, element));
  return seq({for_loop(tx, index(0), columns, ForKind::kSerial, whole), rest});
}

// Each part of the crossing axis has tiles of its own.
StmtRef transposition(const Work& w, size_t crossing, bool parallel) {
  Axis y = w.axes[crossing], x = w.axes.back();
  auto ty = var("tile_y", i64);
  std::vector<Axis> outer(w.axes.begin(), w.axes.end() - 1);
  const std::vector<AxisPart> parts = parts_of(w.body, y);
  if (parts.size() == 1) {
    outer[crossing] = {ty, ceildiv(y.extent, Dim(kTile))};
    return outer_loops(
        outer, parallel,
        row_of_tiles(x, y, ty, index(0), dim_value(y.extent), store_result(w, w.body)));
  }
  int64_t tiles = 0;
  std::vector<int64_t> first;  // tile of each part
  for (const AxisPart& part : parts) {
    first.push_back(tiles);
    tiles += ceil_div(part.end - part.begin, kTile);
  }
  StmtRef body;
  for (size_t i = parts.size(); i-- > 0;) {
    const AxisPart& part = parts[i];
    StmtRef own = row_of_tiles(x, y, difference(ty, index(first[i])), index(part.begin),
                               index(part.end), store_result(w, part.body));
    body = body ? if_then(less(ty, index(first[i + 1])), own, body) : own;
  }
  outer[crossing] = {ty, Dim(tiles)};
  return outer_loops(outer, parallel, body);
}

// How many vectors along x the places repeat after that quotients and remainders give: those of
// enlarging an image by 3, say, whose vectors are then each known. 1 if that isn't known, or more
// than should be written out.
int64_t vectors_of_period(const ExprRef& body, const Axis& x, int64_t lanes) {
  int64_t vectors = 1;
  Coefficients along(x.var);
  post_order(body, [&](const ExprRef& e) {
    if (e->kind != ExprKind::kBinary || e->dtype != i64) return;
    const auto& b = static_cast<const Binary&>(*e);
    if (b.op != BinaryOp::kFloorDiv && b.op != BinaryOp::kMod) return;
    const auto period = as_int(b.b);
    const auto step = along(b.a);
    if (!period || *period <= 0 || !step || !step->is_const() || step->is_const(0)) return;
    const int64_t own = *period / std::gcd(*period, lanes * (*step->as_const() % *period));
    vectors = own <= kMostVectors ? std::lcm(vectors, own) : vectors;
  });
  const bool fits = vectors <= kMostVectors && vectors * count_nodes(body, kMostNodes) < kMostNodes;
  return fits ? vectors : 1;
}

// As vector_range, but each of as many vectors as a period has is written out.
StmtRef vectors_of_periods(const Work& w, const ExprRef& body, const ExprRef& begin,
                           const ExprRef& count, int64_t lanes) {
  const Axis& x = w.axes.back();
  const StmtRef point = store_result(w, body);
  const int64_t vectors = vectors_of_period(body, x, lanes), width = vectors * lanes;
  if (vectors == 1) return vector_range(x.var, begin, count, lanes, point);
  const auto written_out = [&](const ExprRef& first, int64_t n) {
    std::vector<StmtRef> all;
    for (int64_t i = 0; i < n; ++i) {
      all.push_back(
          for_loop(x.var, sum(first, index(i * lanes)), index(lanes), ForKind::kVector, point));
    }
    return seq(all);
  };
  auto block = var("block", i64);
  const ExprRef blocks = quotient(count, index(width));
  std::vector<StmtRef> all{for_loop(block, index(0), blocks, ForKind::kSerial,
                                    written_out(sum(begin, scaled(block, width)), vectors))};
  ExprRef done = scaled(blocks, width);
  if (const auto known = as_int(count)) {
    const int64_t left = *known % width / lanes;
    all.push_back(written_out(sum(begin, done), left));
    done = sum(done, index(left * lanes));
  }
  all.push_back(vector_range(x.var, sum(begin, done), difference(count, done), lanes, point));
  return seq(all);
}

}  // namespace

StmtRef schedule_map(Work w, const ScheduleOptions& options, bool parallel) {
  collapse(&w);
  if (w.axes.empty()) return store_result(w, w.body);
  if (int crossing = crossing_axis(w); crossing >= 0) {
    return transposition(w, static_cast<size_t>(crossing), parallel);
  }
  Axis x = w.axes.back();
  int64_t lanes = within_stack(w.body, x.var, {lanes_of(w, options), 1}).lanes;
  Lets lets;
  w.body = hoist(w.body, {x.var}, &lets);
  auto run = [&](const ExprRef& begin, const ExprRef& count) {
    return vectors_of_periods(w, w.body, begin, count, lanes);
  };
  ExprRef extent = dim_value(x.extent);
  // The whole axis, one part after the other.
  auto run_all = [&] {
    const std::vector<AxisPart> parts = parts_of(w.body, x);
    if (parts.size() == 1) return run(index(0), extent);
    std::vector<StmtRef> all;
    for (const AxisPart& part : parts) {
      all.push_back(
          vectors_of_periods(w, part.body, index(part.begin), index(part.end - part.begin), lanes));
    }
    return seq(all);
  };
  StmtRef body;
  if (w.axes.size() > 1) {
    std::vector<Axis> outer(w.axes.begin(), w.axes.end() - 1);
    // Hoisted parts may fail, so they aren't computed if there is no element.
    StmtRef row = if_then(lets.empty() ? literal_int(boolean, 1) : less(index(0), extent),
                          with_lets(lets, run_all()));
    // Parts that depend on no inner axis are computed before its loop, once per outer index.
    return outer_loops(outer, parallel, row);
  }
  auto known = x.extent.as_const();
  if (!parallel || (known && *known <= kBlock)) {
    body = run_all();
  } else {
    auto part = var("part", i64), begin = var("begin", i64), count = var("count", i64);
    body = let(begin, scaled(part, kBlock),
               let(count, smaller(index(kBlock), difference(extent, begin)), run(begin, count)));
    body = for_loop(part, index(0), dim_value(ceildiv(x.extent, Dim(kBlock))), ForKind::kParallel,
                    body);
  }
  return if_then(lets.empty() ? literal_int(boolean, 1) : less(index(0), extent),
                 with_lets(lets, body));
}

}  // namespace tenon::loop
