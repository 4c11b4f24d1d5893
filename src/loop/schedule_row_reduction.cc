// Reductions whose vectors run along the last axis of the result, such as sums of columns and
// windows along a row: each lane has a result of its own. Windows at a row's edges leave out what
// is padding; all others check nothing.
#include <algorithm>
#include <span>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/padding.h"
#include "loop/walk.h"
#include "support/rounding.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostNodes = 1 << 14;  // of the expressions that a block of results writes out
// Of the edges of a row, the vectors that are written out; and of these, the reduced elements.
constexpr int64_t kMostEdgeVectors = 8, kMostWrittenOut = 32;

class RowReductionSchedule {
 public:
  RowReductionSchedule(Work w, const ScheduleOptions& options, bool parallel)
      : w_(std::move(w)), nodes_(count_nodes(w_.body, kMostNodes)), parallel_(parallel) {
    const int64_t most = options.target.vector_bytes >= 64 ? 16 : 8;
    const VectorsAtOnce at_once = within_stack(
        w_.body, x().var, {lanes_of(w_, options), std::min(most, kMostNodes / nodes_)});
    lanes_ = at_once.lanes;
    across_ = at_once.vectors;
  }

  StmtRef run() {
    if (const int64_t rows = rows_at_once(); rows > 1) return in_blocks_of_rows(rows);
    const std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 1);
    const bool split_here = parallel_ && outer.empty();
    const ForKind blocks = split_here ? ForKind::kParallel : ForKind::kSerial;
    const StmtRef row = find_inner() ? with_edges(blocks)
                                     : vectors({index(0), dim_value(x().extent)}, w_.body, blocks);
    return outer_loops(outer, parallel_ && !split_here, row);
  }

 private:
  ExprRef start() const { return identity(w_.reduction, w_.accumulate); }
  ExprRef step(const ExprRef& acc, const ExprRef& v) const { return combine(w_.reduction, acc, v); }

  // `vectors` vectors of results starting at x0, in each of `rows` rows starting at y0, which is
  // null if the row is the surrounding loops'; with `end`, only results below it.
  struct Block {
    ExprRef y0 = nullptr;
    int64_t rows = 1;
    ExprRef x0;
    int64_t lanes, vectors;
    ExprRef end = nullptr;
    bool is_written_out = false;  // for each element of the last reduced axis, if these are few
  };

  // The results of a block; `body` as the work's, or without conditions that hold there.
  StmtRef result_block(const Block& block, ExprRef body) const {
    const int64_t width = block.lanes * block.vectors;
    auto acc = buffer("acc", w_.accumulate, {Dim(width * block.rows)});
    auto lane = var("lane", i64);
    // A vector's place among the partial results, and that of its results.
    struct Vector {
      ExprRef acc, x, y;
    };
    auto each = [&](const std::function<StmtRef(const Vector&)>& write) {
      return each_vector(lane, block.lanes, block.rows * block.vectors, [&](int64_t i) {
        const int64_t row = i / block.vectors, first = i % block.vectors * block.lanes;
        return write({sum(index(i * block.lanes), lane), sum(block.x0, sum(index(first), lane)),
                      block.y0 ? sum(block.y0, index(row)) : nullptr});
      });
    };
    auto at = [&](const ExprRef& e, const Vector& v) {
      const ExprRef in_row = v.y ? substitute(e, {{row_axis().var.get(), v.y}}) : e;
      return substitute(in_row, {{w_.axes.back().var.get(), v.x}});
    };
    auto inside = [&](const Vector& v) { return less(v.x, block.end); };
    const std::vector<Range> ranges = restricted_ranges(w_, along(), &body);
    StmtRef steps = each([&](const Vector& v) {
      ExprRef value = at(cast(w_.accumulate, body), v);
      if (block.end) value = select(inside(v), value, start());
      return store(acc, {v.acc}, step(load(acc, {v.acc}), value));
    });
    std::span<const Axis> reduce = w_.reduce;
    const auto most = as_int(difference(ranges.back().end, ranges.back().begin));
    if (block.is_written_out && most && *most <= kMostWrittenOut && *most * nodes_ <= kMostNodes) {
      steps =
          for_loop(reduce.back().var, ranges.back().begin, index(*most), ForKind::kUnrolled, steps);
      reduce = reduce.first(reduce.size() - 1);
    }
    steps = loops_within(reduce, ranges, steps);
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
    for (const Range& r : restricted_ranges(w_, along(), &body)) {
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
          {.y0 = first, .rows = count, .x0 = index(0), .lanes = lanes_, .vectors = vectors},
          w_.body);
    };
    std::vector<StmtRef> parts{
        outer_loops(blocks, parallel_, rows_from(scaled(block, rows), rows))};
    if (left > 0) {
      parts.push_back(outer_loops(outer, parallel_, rows_from(index(extent - left), left)));
    }
    return seq(parts);
  }

  // Whether conditions on x hold for all results between two edges of a row.
  bool find_inner() {
    Guarded g = guarded(w_);
    std::vector<ExprRef> bounding, left;
    for (const ExprRef& c : g.conditions) (depends_on(c, x().var) ? bounding : left).push_back(c);
    auto found = bounding.empty() ? std::nullopt : inner_places(w_, x(), bounding);
    if (!found) return false;
    inner_ = found->range;
    inner_body_ = with_conditions({std::move(left), std::move(g.body)}, w_);
    return true;
  }

  StmtRef with_edges(ForKind blocks) const {
    const auto begin = as_int(inner_.begin), end = as_int(inner_.end);
    const auto extent = x().extent.as_const();
    return begin && end && extent ? with_known_edges(*begin, *end, *extent, blocks)
                                  : with_unknown_edges(blocks);
  }

  // Of vectors that reach into an edge and are written out, it is known which lanes are inside.
  StmtRef with_known_edges(int64_t begin, int64_t end, int64_t extent, ForKind blocks) const {
    const int64_t first = std::min(round_up(begin, lanes_), extent);
    const int64_t last = first + std::max<int64_t>(end - first, 0) / lanes_ * lanes_;
    std::vector<StmtRef> parts{edge(0, first)};
    if (last > first) parts.push_back(vectors({index(first), index(last)}, inner_body_, blocks));
    parts.push_back(edge(last, extent));
    return seq(parts);
  }

  StmtRef edge(int64_t from, int64_t to) const {
    if (to - from > kMostEdgeVectors * lanes_) {
      return vectors({index(from), index(to)}, w_.body, ForKind::kSerial);
    }
    std::vector<StmtRef> parts;
    for (int64_t at = from; at < to; at += lanes_) {
      const int64_t left = to - at;
      const bool is_whole = left >= lanes_;
      parts.push_back(result_block({.x0 = index(at),
                                    .lanes = is_whole ? lanes_ : tail_lanes(left),
                                    .vectors = 1,
                                    .end = is_whole ? nullptr : index(to),
                                    .is_written_out = true},
                                   w_.body));
    }
    return seq(parts);
  }

  // The places between the edges as vectors, and those at the edges one by one, each without the
  // elements that are outside.
  StmtRef with_unknown_edges(ForKind blocks) const {
    auto at = var("at", i64);
    const ExprRef inner = difference(inner_.end, inner_.begin);
    const ExprRef place = select(less(at, inner_.begin), at, sum(at, inner));
    const ExprRef edges = difference(dim_value(x().extent), inner);
    return seq({for_loop(at, index(0), edges, ForKind::kSerial, let(x().var, place, one_place())),
                vectors(inner_, inner_body_, blocks)});
  }

  StmtRef one_place() const {
    auto acc = buffer("acc", w_.accumulate, {});
    ExprRef body = w_.body;
    const std::vector<Range> ranges = restricted_ranges(w_, nullptr, &body);
    const StmtRef add = store(acc, {}, step(load(acc, {}), cast(w_.accumulate, body)));
    return alloc(acc, seq({store(acc, {}, start()), loops_within(w_.reduce, ranges, add),
                           store_result(w_, load(acc, {}))}));
  }

  // Whether a vector of results takes elements that aren't neighbours.
  bool takes_strides(const ExprRef& body) const {
    return std::ranges::any_of(loads_in(body), [&](const Load* l) {
      if (l->indices.empty()) return false;
      const auto c = coefficient(l->indices[0], x().var);
      return !c || !(c->is_const(0) || c->is_const(1));
    });
  }

  const Axis& x() const { return w_.axes.back(); }
  const Var* along() const { return x().var.get(); }

  // The results within a range as blocks of several vectors, then of fewer, then part of one.
  StmtRef vectors(const Range& range, const ExprRef& body, ForKind blocks) const {
    const ExprRef count = difference(range.end, range.begin);
    const auto known = as_int(count);
    std::vector<int64_t> sizes{across_, std::min<int64_t>(across_, 4), 1};
    if (known) {
      const int64_t vectors = *known / lanes_;
      sizes = {std::min(across_, vectors), vectors % across_};
    } else {
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
    std::vector<StmtRef> parts;
    ExprRef done = range.begin;
    for (int64_t n : sizes) {
      if (n == 0) continue;
      auto block = var("block", i64);
      const int64_t width = n * lanes_;
      const ExprRef turns = quotient(difference(range.end, done), index(width));
      parts.push_back(for_loop(
          block, index(0), turns, parts.empty() ? blocks : ForKind::kSerial,
          result_block({.x0 = sum(done, scaled(block, width)), .lanes = lanes_, .vectors = n},
                       body)));
      done = sum(done, scaled(turns, width));
    }
    if (known && takes_strides(body)) {
      for (const PartVector& part : part_vectors(*known, lanes_)) {
        parts.push_back(result_block(
            {.x0 = sum(range.begin, index(part.first)), .lanes = part.lanes, .vectors = 1}, body));
      }
      return seq(parts);
    }
    parts.push_back(if_then(
        less(done, range.end),
        result_block({.x0 = done, .lanes = tail_lanes(known), .vectors = 1, .end = range.end},
                     body)));
    return seq(parts);
  }

  int64_t tail_lanes(std::optional<int64_t> count) const {
    if (!count) return lanes_;
    int64_t left = *count % lanes_, width = 2;
    while (width < left) width *= 2;
    return width;
  }

  Work w_;
  int64_t nodes_;  // of the body
  int64_t lanes_ = 0;
  int64_t across_ = 0;  // vectors of results at once, for long runs of memory
  bool parallel_;

  Range inner_;         // of places along x
  ExprRef inner_body_;  // there
};

}  // namespace

StmtRef schedule_row_reduction(Work w, const ScheduleOptions& options, bool parallel) {
  return RowReductionSchedule(std::move(w), options, parallel).run();
}

}  // namespace tenon::loop
