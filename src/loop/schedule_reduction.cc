// Reductions: vectors along the reduced axis with partial results per lane, or along an axis of the
// result, whichever the operands are contiguous in. How a sum is split depends only on the shape.
#include <algorithm>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/padding.h"
#include "loop/schedule_plain.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kUnroll = 4;  // vectors of partial results, to hide the latency of an addition
constexpr int64_t kMostNodes = 1 << 14;  // of the expressions that a block of results writes out

class ReductionSchedule {
 public:
  ReductionSchedule(Work w, const ScheduleOptions& options, bool parallel)
      : w_(std::move(w)),
        lanes_(lanes_of(w_, options)),
        across_(std::clamp<int64_t>(kMostNodes / count_nodes(w_.body, kMostNodes), 1,
                                    options.target.vector_bytes >= 64 ? 16 : 8)),
        parallel_(parallel) {}

  StmtRef run() {
    if (is_arg_reduction(w_.reduction) || w_.reduce.empty()) return plain();
    bool any = !loads_in(w_.body).empty();
    if (any && runs_along_result(w_)) return along_result_axis();
    if (any && is_contiguous(w_.reduce.back())) return along_reduced_axis();
    return plain();
  }

 private:
  bool is_contiguous(const Axis& a) const {
    for (const Load* l : loads_in(w_.body)) {
      if (l->indices.empty()) continue;
      auto c = coefficient(l->indices[0], a.var);
      if (c && c->is_const(1)) return true;
    }
    return false;
  }

  ExprRef value() const { return cast(w_.accumulate, w_.body); }
  ExprRef start() const { return identity(w_.reduction, w_.accumulate); }
  ExprRef step(const ExprRef& acc, const ExprRef& v) const { return combine(w_.reduction, acc, v); }

  StmtRef plain() {
    if (is_arg_reduction(w_.reduction) && w_.reduce.empty()) {  // its one axis had extent 1
      return outer_loops(w_.axes, parallel_, store_result(w_, index(0)));
    }
    Stage s;
    s.body = w_.body;
    s.reduction = w_.reduction;
    s.accumulate = w_.accumulate;
    for (const Axis& a : w_.reduce) {
      s.reduce_axes.push_back(a.var);
      s.reduce_extents.push_back(a.extent);
    }
    StmtRef point =
        plain_reduction(s, [&](const ExprRef& result) { return store_result(w_, result); });
    return outer_loops(w_.axes, parallel_, point);
  }

  // ---- vectors along the last reduced axis

  StmtRef along_reduced_axis() {
    Axis k = w_.reduce.back();
    auto known = k.extent.as_const();
    int64_t lanes = lanes_;
    while (known && lanes > *known && lanes > 2) lanes /= 2;
    int64_t unroll = known && *known < 2 * kUnroll * lanes ? 1 : kUnroll;
    int64_t width = lanes * unroll;
    auto acc = buffer("acc", w_.accumulate, {Dim(width)});
    auto lane = var("lane", i64);
    auto fill = [&](int64_t first) {
      return for_loop(lane, index(first), index(lanes), ForKind::kVector,
                      store(acc, {lane}, start()));
    };
    std::vector<StmtRef> begin;
    for (int64_t u = 0; u < unroll; ++u) begin.push_back(fill(u * lanes));

    // Adds the body at k = first + lane to acc[place + lane].
    auto add = [&](const ExprRef& first, int64_t place, const ExprRef& end) {
      ExprRef at = sum(index(place), lane), element = sum(first, lane);
      ExprRef v = substitute(value(), {{k.var.get(), element}});
      if (end) v = select(less(element, end), v, start());
      return for_loop(lane, index(0), index(lanes), ForKind::kVector,
                      store(acc, {at}, step(load(acc, {at}), v)));
    };
    ExprRef extent = dim_value(k.extent);
    auto block = var("block", i64), tail = var("block", i64);
    ExprRef blocks = quotient(extent, index(width));
    std::vector<StmtRef> wide;
    for (int64_t u = 0; u < unroll; ++u) {
      wide.push_back(add(sum(scaled(block, width), index(u * lanes)), u * lanes, nullptr));
    }
    std::vector<StmtRef> inner{for_loop(block, index(0), blocks, ForKind::kSerial, seq(wide))};
    ExprRef done = scaled(blocks, width);
    ExprRef vectors = quotient(difference(extent, done), index(lanes));
    if (unroll > 1) {
      inner.push_back(for_loop(tail, index(0), vectors, ForKind::kSerial,
                               add(sum(done, scaled(tail, lanes)), 0, nullptr)));
    }
    ExprRef first = sum(done, unroll > 1 ? scaled(vectors, lanes) : index(0));
    inner.push_back(if_then(less(first, extent), add(first, 0, extent)));

    const StmtRef body =
        outer_loops(std::span(w_.reduce).first(w_.reduce.size() - 1), false, seq(inner));
    // Combines halves until one element is left.
    std::vector<StmtRef> finish;
    for (int64_t half = width / 2; half >= 1; half /= 2) {
      int64_t n = std::min(half, lanes);
      for (int64_t first_lane = 0; first_lane < half; first_lane += n) {
        ExprRef at = sum(index(first_lane), lane);
        StmtRef meet = store(acc, {at}, step(load(acc, {at}), load(acc, {sum(at, index(half))})));
        finish.push_back(
            for_loop(lane, index(0), index(n), n > 1 ? ForKind::kVector : ForKind::kSerial, meet));
      }
    }
    finish.push_back(store_result(w_, load(acc, {index(0)})));
    StmtRef point = alloc(acc, seq({seq(begin), body, seq(finish)}));
    return outer_loops(w_.axes, parallel_, point);
  }

  // ---- vectors along the last axis of the result

  // `vectors` vectors of results starting at x0, in each of `rows` rows starting at y0, which is
  // null if the row is the surrounding loops'; with `end`, only results below it.
  struct Block {
    ExprRef y0 = nullptr;
    int64_t rows = 1;
    ExprRef x0;
    int64_t lanes, vectors;
    ExprRef end = nullptr;
  };

  StmtRef result_block(const Block& block) {
    const int64_t width = block.lanes * block.vectors;
    auto acc = buffer("acc", w_.accumulate, {Dim(width * block.rows)});
    auto lane = var("lane", i64);
    // A vector's place among the partial results, and that of its results.
    struct Vector {
      ExprRef acc, x, y;
    };
    auto each = [&](const std::function<StmtRef(const Vector&)>& body) {
      return each_vector(lane, block.lanes, block.rows * block.vectors, [&](int64_t i) {
        const int64_t row = i / block.vectors, first = i % block.vectors * block.lanes;
        return body({sum(index(i * block.lanes), lane), sum(block.x0, sum(index(first), lane)),
                     block.y0 ? sum(block.y0, index(row)) : nullptr});
      });
    };
    auto at = [&](const ExprRef& e, const Vector& v) {
      const ExprRef in_row = v.y ? substitute(e, {{row_axis().var.get(), v.y}}) : e;
      return substitute(in_row, {{w_.axes.back().var.get(), v.x}});
    };
    auto inside = [&](const Vector& v) { return less(v.x, block.end); };
    ExprRef body = w_.body;
    const std::vector<Range> ranges = restricted_ranges(w_, &body);
    StmtRef steps = each([&](const Vector& v) {
      ExprRef value = at(cast(w_.accumulate, body), v);
      if (block.end) value = select(inside(v), value, start());
      return store(acc, {v.acc}, step(load(acc, {v.acc}), value));
    });
    steps = loops_within(w_.reduce, ranges, steps);
    StmtRef finish = each([&](const Vector& v) {
      auto result = var("result", w_.accumulate);
      StmtRef write = store(w_.out, {at(w_.offset, v)}, cast(w_.out->dtype, result));
      if (w_.inside) write = if_then(at(w_.inside, v), write);
      return let(result, load(acc, {v.acc}), block.end ? if_then(inside(v), write) : write);
    });
    StmtRef begin = each([&](const Vector& v) { return store(acc, {v.acc}, start()); });
    return alloc(acc, seq({begin, steps, finish}));
  }

  const Axis& row_axis() const { return w_.axes[w_.axes.size() - 2]; }

  // The number of rows of a block: several if rows are so short that one has too few partial
  // results to hide the latency of an addition, such as the panels of a packed matrix.
  int64_t rows_at_once() const {
    if (w_.axes.size() < 2) return 1;
    const auto columns = w_.axes.back().extent.as_const(), rows = row_axis().extent.as_const();
    if (!columns || !rows || *columns == 0 || *columns % lanes_ != 0) return 1;
    ExprRef body = w_.body;
    for (const Range& r : restricted_ranges(w_, &body)) {
      for (const ExprRef& end : {r.begin, r.end}) {
        if (depends_on(end, row_axis().var)) return 1;
      }
    }
    return std::clamp<int64_t>(across_ / (*columns / lanes_), 1, std::max<int64_t>(*rows, 1));
  }

  // Blocks of several rows, each as a whole, then the rows that are left.
  StmtRef in_blocks_of_rows(int64_t rows) {
    const int64_t vectors = *w_.axes.back().extent.as_const() / lanes_;
    const std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 2);
    const int64_t extent = *row_axis().extent.as_const(), left = extent % rows;
    auto block = var("block", i64);
    std::vector<Axis> blocks = outer;
    blocks.push_back({block, Dim(extent / rows)});
    auto rows_from = [&](const ExprRef& first, int64_t count) {
      return result_block(
          {.y0 = first, .rows = count, .x0 = index(0), .lanes = lanes_, .vectors = vectors});
    };
    std::vector<StmtRef> parts{
        outer_loops(blocks, parallel_, rows_from(scaled(block, rows), rows))};
    if (left > 0) {
      parts.push_back(outer_loops(outer, parallel_, rows_from(index(extent - left), left)));
    }
    return seq(parts);
  }

  StmtRef along_result_axis() {
    if (const int64_t rows = rows_at_once(); rows > 1) return in_blocks_of_rows(rows);
    const Axis& x = w_.axes.back();
    std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 1);
    bool split_here = parallel_ && outer.empty();
    ExprRef extent = dim_value(x.extent), done = index(0);
    std::vector<StmtRef> parts;
    // Blocks of several vectors, then of fewer, then part of one.
    std::vector<int64_t> sizes{across_, std::min<int64_t>(across_, 4), 1};
    if (auto known = x.extent.as_const()) {
      int64_t vectors = *known / lanes_;
      sizes = {std::min(across_, vectors), vectors % across_};
    } else {
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
    for (int64_t n : sizes) {
      if (n == 0) continue;
      auto block = var("block", i64);
      int64_t width = n * lanes_;
      ExprRef blocks = quotient(difference(extent, done), index(width));
      parts.push_back(for_loop(
          block, index(0), blocks,
          split_here && parts.empty() ? ForKind::kParallel : ForKind::kSerial,
          result_block({.x0 = sum(done, scaled(block, width)), .lanes = lanes_, .vectors = n})));
      done = sum(done, scaled(blocks, width));
    }
    parts.push_back(
        if_then(less(done, extent),
                result_block({.x0 = done, .lanes = tail_lanes(x), .vectors = 1, .end = extent})));
    return outer_loops(outer, parallel_ && !split_here, seq(parts));
  }

  int64_t tail_lanes(const Axis& x) const {
    auto known = x.extent.as_const();
    if (!known) return lanes_;
    int64_t left = *known % lanes_, width = 2;
    while (width < left) width *= 2;
    return width;
  }

  Work w_;
  int64_t lanes_;
  int64_t across_;  // vectors of results at once, for long runs of memory
  bool parallel_;
};

}  // namespace

bool runs_along_result(const Work& w) {
  if (w.axes.empty() || w.reduce.empty()) return false;
  int result = 0, across_result = 0, across_reduction = 0;
  for (const Load* l : loads_in(w.body)) {
    if (l->indices.empty()) continue;
    auto a = coefficient(l->indices[0], w.axes.back().var);
    // Along the innermost summed axis on which it depends.
    std::optional<Dim> b = Dim(0);
    for (size_t i = w.reduce.size(); i-- > 0 && b && b->is_const(0);) {
      b = coefficient(l->indices[0], w.reduce[i].var);
    }
    result += a && a->is_const(1);
    across_result += !a || !(a->is_const(0) || a->is_const(1));
    across_reduction += !b || !(b->is_const(0) || b->is_const(1));
  }
  return result > 0 && across_result < across_reduction;
}

StmtRef schedule_reduction(Work w, const ScheduleOptions& options, bool parallel) {
  collapse(&w);
  if (w.padding_is_skippable) w.body = with_padding_outside(w.body);
  return ReductionSchedule(std::move(w), options, parallel).run();
}

}  // namespace tenon::loop
