// Sums of products: matrix products and convolutions, in the tiles of contraction_plan.h.
//
//   parallel over blocks
//     pack the rows of `a`               (for a convolution, this is im2col)
//     for each column of tiles
//       pack its columns of `b`
//       for each tile
//         sums = 0; for k: sums += a * b; what follows the sum, while they are in the cache
//
// An operand that can be read in place isn't packed. Few rows are computed one by one.
//
// Padding is multiplied as zeros. Columns of the last panel that the result lacks are computed, but
// not stored.
#include <algorithm>
#include <utility>

#include "loop/affine.h"
#include "loop/byte_matrix.h"
#include "loop/contraction_plan.h"
#include "loop/nest.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kFewRows = 4;

ExprRef minus_one(const ExprRef& a) {
  return difference(a, index(1));
}

class ContractionNest {
 public:
  ContractionNest(const Work& w, const Ref<const Var>& sum, const std::vector<Work>& after,
                  const ScheduleOptions& options, bool parallel, ContractionPlan plan)
      : w_(w),
        sum_(sum),
        after_(after),
        options_(options),
        parallel_(parallel),
        p_(std::move(plan)) {}

  StmtRef run() {
    StmtRef tiles = all_tiles(false);
    if (p_.rows.is_const() || !is_contiguous(p_.b, p_.x)) return tiles;
    if (panels_at_once() > 1 && p_.tile_rows > kNarrowRows) {
      ContractionNest narrow(w_, sum_, after_, options_, parallel_, narrowed(p_));
      tiles =
          if_then(less(dim_value(p_.rows), index(kNarrowRows + 1)), narrow.all_tiles(true), tiles);
    }
    return if_then(less(dim_value(p_.rows), index(kFewRows)), few_rows(), tiles);
  }

 private:
  // Tiles of all results; `one_block`: their rows fit in one block.
  StmtRef all_tiles(bool one_block) {
    auto block_m = var("block_m", i64), block_n = var("block_n", i64);
    std::vector<Axis> tasks = p_.batch;
    tasks.push_back({block_n, p_.panels ? ceildiv(p_.panels->extent, Dim(p_.tiling.column_tiles))
                                        : ceildiv(p_.x.extent, Dim(p_.block_columns))});
    if (!one_block) {
      tasks.insert(p_.rows_first ? tasks.end() - 1 : tasks.end(),
                   {block_m, ceildiv(p_.rows, p_.block)});
    }
    auto m0 = var("m0", i64), n0 = var("n0", i64), m_count = var("rows", i64),
         n_count = var("columns", i64);
    if (!p_.a_direct) {
      a_pack_ = buffer("a_pack", w_.accumulate, {Dim(p_.block_rows) * p_.row_stride});
    }
    if (!p_.b_direct) b_pack_ = buffer("b_pack", w_.accumulate, {p_.depth * Dim(p_.width)});
    StmtRef body = columns(m0, m_count, n0, n_count);
    if (!p_.a_direct) body = alloc(a_pack_, seq({pack_a(m0, m_count), body}));
    ExprRef rows_left = difference(dim_value(p_.rows), m0);
    // If `b` is packed in panels, columns are counted in panels.
    const int64_t block_n_size = p_.panels ? p_.tiling.column_tiles : p_.block_columns;
    ExprRef columns_left = difference(dim_value(p_.panels ? p_.panels->extent : p_.x.extent), n0);
    const ExprRef block = dim_value(p_.block);
    body = let(m0, one_block ? index(0) : binary(BinaryOp::kMul, block_m, block),
               let(n0, scaled(block_n, block_n_size),
                   let(m_count, smaller(block, rows_left),
                       let(n_count, smaller(index(block_n_size), columns_left), body))));
    return outer_loops(tasks, parallel_, body);
  }

  // Row by row: a row times a matrix reads each element of `b` once, so packing would cost more
  // than it gains.
  StmtRef few_rows() {
    if (const int64_t panels = panels_at_once(); panels > 1) return few_rows(panels);
    const Row row = row_of(w_.body, {p_.x}, p_.x.extent, p_.x.var);
    std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 1);
    return outer_loops(outer, parallel_, alloc(row.buffer, seq({row.sums, row.rest})));
  }

  // Several panels at once, since one has too few partial sums to hide the latency of an addition:
  // all rows read them while they are in a cache.
  StmtRef few_rows(int64_t panels) {
    auto block = var("block", i64), panel = var("panel", i64);
    const ExprRef in_block = sum(scaled(block, panels), panel),
                  place = sum(scaled(panel, p_.width), p_.x.var);
    const Row row = row_of(substitute(w_.body, {{p_.panels->var.get(), in_block}}),
                           {{panel, Dim(panels)}, p_.x}, Dim(panels * p_.width), place);
    StmtRef rest = for_loop(panel, index(0), index(panels), ForKind::kSerial,
                            let(p_.panels->var, in_block, row.rest));
    const std::vector<Axis> rows(w_.axes.begin(), w_.axes.end() - 2);
    return for_loop(block, index(0), index(*p_.panels->extent.as_const() / panels),
                    parallel_ ? ForKind::kParallel : ForKind::kSerial,
                    outer_loops(rows, false, alloc(row.buffer, seq({row.sums, rest}))));
  }

  struct Row {
    Ref<const Buffer> buffer;
    StmtRef sums, rest;  // into the buffer; from there, over the columns
  };

  // Some sums of one row, over `axes`, in a buffer of that size, and what is made of them, each
  // from its `place` there.
  Row row_of(const ExprRef& body, std::vector<Axis> axes, const Dim& size, const ExprRef& place) {
    Work row = w_;
    row.body = body;
    row.axes = std::move(axes);
    row.out = buffer("row", w_.accumulate, {size});
    row.offset = place;
    row.inside = nullptr;
    row.padding_is_skippable = false;  // as in the tiles
    StmtRef sums = schedule_reduction(row, options_, false);
    StmtRef point = let(sum_, load(row.out, {place}), store_results(after_));
    return {row.out, sums,
            vector_range(p_.x.var, index(0), dim_value(p_.x.extent), p_.lanes, point)};
  }

  // The most panels, up to 8, that divide their number.
  int64_t panels_at_once() const {
    const auto all = p_.panels ? p_.panels->extent.as_const() : std::nullopt;
    if (!all || *all == 0) return 1;
    int64_t panels = std::min<int64_t>(8, *all);
    while (*all % panels != 0) --panels;
    return panels;
  }

  // ---- positions

  // k as one number, from the reduced variables.
  ExprRef flat_depth() const {
    ExprRef k = index(0);
    for (const Axis& a : w_.reduce) {
      k = sum(binary(BinaryOp::kMul, k, dim_value(a.extent)), a.var);
    }
    return k;
  }
  // Binds the reduced variables from axis `start` on, so that an operand contiguous from there on
  // is at `k`.
  VarMap depth_at(const ExprRef& k, size_t start = 0) const {
    VarMap at;
    for (size_t i = start; i < w_.reduce.size(); ++i) at[w_.reduce[i].var.get()] = index(0);
    at[w_.reduce.back().var.get()] = k;
    return at;
  }
  // All of k as one number, at step `k` of a run of `a`.
  ExprRef step_of_all(const ExprRef& k) const {
    ExprRef runs = index(0);
    for (size_t i = 0; i < p_.run_start; ++i) {
      runs = sum(binary(BinaryOp::kMul, runs, dim_value(w_.reduce[i].extent)), w_.reduce[i].var);
    }
    return sum(binary(BinaryOp::kMul, runs, dim_value(p_.run)), k);
  }
  // Lets for the axes of m at row `m`; with `values`, the variables are fresh.
  Lets row_axes(const ExprRef& m, VarMap* values) const {
    Lets lets;
    auto rest = var("row", i64);
    lets.emplace_back(rest, m);
    ExprRef left = rest;
    for (size_t i = p_.m.size(); i-- > 0;) {
      auto v = values ? var(p_.m[i].var->name.view(), i64) : p_.m[i].var;
      if (values) (*values)[p_.m[i].var.get()] = v;
      ExprRef extent = dim_value(p_.m[i].extent);
      lets.emplace_back(v, i == 0 ? left : binary(BinaryOp::kMod, left, extent));
      if (i > 0) left = quotient(left, extent);
    }
    return lets;
  }

  // ---- packing

  // a_pack[row * p_.row_stride + k], for the rows of the block; of tiles in matrices, the last row
  // is repeated up to the end of a tile.
  StmtRef pack_a(const ExprRef& m0, const ExprRef& rows) {
    auto row = var("pack_row", i64);
    const Axis& k = w_.reduce.back();
    ExprRef at = sum(binary(BinaryOp::kMul, row, dim_value(p_.row_stride)), flat_depth());
    ExprRef place = flat_offset(a_pack_->shape, {at}, w_.vars());
    StmtRef element = store(a_pack_, {place}, p_.a);
    const Load* const word = load_of_word(p_.a);
    const bool in_words = word && coefficient(word->indices[0], k.var) == Dim(kBytesPerWord);
    StmtRef body = is_contiguous(p_.a, k) || in_words
                       ? vector_range(k.var, index(0), dim_value(k.extent), p_.lanes, element)
                       : for_loop(k.var, index(0), dim_value(k.extent), ForKind::kSerial, element);
    body = outer_reduce_loops(body);
    ExprRef count = rows, packed = row;
    if (p_.in_matrices) {
      count = scaled(tiles_of(rows), p_.tile_rows);
      packed = smaller(row, minus_one(rows));
    }
    return for_loop(row, index(0), count, ForKind::kSerial,
                    with_lets(row_axes(sum(m0, packed), nullptr), body));
  }

  // Loops over all summed axes but the last.
  StmtRef outer_reduce_loops(const StmtRef& body) const {
    return outer_loops(std::span(w_.reduce).first(w_.reduce.size() - 1), false, body);
  }

  // b_pack[k * width + column], for the columns from n on; zeros beyond the last.
  StmtRef pack_b(const ExprRef& n) {
    const Axis& k = w_.reduce.back();
    ExprRef end = dim_value(p_.x.extent);
    auto lane = var("lane", i64);
    auto element = [&](const ExprRef& column, const ExprRef& at) {
      ExprRef value = substitute(p_.b, {{p_.x.var.get(), at}});
      return store(b_pack_, {sum(scaled(flat_depth(), p_.width), column)}, value);
    };
    if (is_contiguous(p_.b, p_.x)) {
      auto fill = [&](bool masked) {
        StmtRef all = each_vector(lane, p_.lanes, p_.tiling.vectors, [&](int64_t u) {
          ExprRef column = sum(index(u * p_.lanes), lane), at = sum(n, column);
          ExprRef value = substitute(p_.b, {{p_.x.var.get(), at}});
          if (masked) value = select(less(at, end), value, zero());
          return store(b_pack_, {sum(scaled(flat_depth(), p_.width), column)}, value);
        });
        return outer_reduce_loops(
            for_loop(k.var, index(0), dim_value(k.extent), ForKind::kSerial, all));
      };
      return if_then(binary(BinaryOp::kLe, sum(n, index(p_.width)), end), fill(false), fill(true));
    }
    // One column at a time, a cache line of k at once. Columns beyond the last repeat it.
    constexpr int64_t kLine = 16;
    auto column = var("column", i64), line = var("line", i64);
    ExprRef first = scaled(line, kLine), depth = dim_value(k.extent);
    StmtRef body =
        for_loop(k.var, first, smaller(index(kLine), difference(depth, first)), ForKind::kSerial,
                 element(column, smaller(sum(n, column), minus_one(end))));
    body = for_loop(column, index(0), index(p_.width), ForKind::kSerial, body);
    body =
        for_loop(line, index(0), dim_value(ceildiv(k.extent, Dim(kLine))), ForKind::kSerial, body);
    return outer_reduce_loops(body);
  }

  // ---- the tiles of a block

  ExprRef zero() const { return identity(Reduction::kSum, w_.accumulate); }
  ExprRef tiles_of(const ExprRef& rows) const {
    return quotient(sum(rows, index(p_.tile_rows - 1)), index(p_.tile_rows));
  }

  StmtRef columns(const ExprRef& m0, const ExprRef& m_count, const ExprRef& n0,
                  const ExprRef& n_count) {
    auto tile_n = var("tile_n", i64), n = var("n", i64), tile_m = var("tile_m", i64),
         first = var("first", i64);
    const ExprRef start = scaled(tile_m, p_.tile_rows);
    const StmtRef body_of_tile =
        p_.in_matrices ? matrix_tile(m0, m_count, first, n) : tile(m0, m_count, first, n);
    StmtRef tiles = for_loop(tile_m, index(0), tiles_of(m_count), ForKind::kSerial,
                             let(first, start, body_of_tile));
    StmtRef body = p_.b_direct ? tiles : seq({pack_b(n), tiles});
    if (p_.panels) {
      body = let(n, index(0), let(p_.panels->var, sum(n0, tile_n), body));
      body = for_loop(tile_n, index(0), n_count, ForKind::kSerial, body);
      return p_.b_direct ? body : alloc(b_pack_, body);
    }
    body = for_loop(tile_n, index(0), quotient(sum(n_count, index(p_.width - 1)), index(p_.width)),
                    ForKind::kSerial, let(n, sum(n0, scaled(tile_n, p_.width)), body));
    return p_.b_direct ? body : alloc(b_pack_, body);
  }

  // The tile of rows from `first` and columns from `n`, in the block of rows that starts at m0.
  StmtRef tile(const ExprRef& m0, const ExprRef& m_count, const ExprRef& first, const ExprRef& n) {
    auto acc = buffer("acc", w_.accumulate, {Dim(p_.tile_rows * p_.width)});
    auto done = buffer("tile", w_.accumulate, {Dim(p_.tile_rows * p_.width)});
    auto lane = var("lane", i64), k = var("k", i64);

    // Rows beyond the last compute it again and aren't stored.
    Lets lets;
    const ExprRef place = step_of_all(k);
    const auto fetched = var("fetched", i64);
    const StmtRef fetch_next = fetch(place, fetched);
    if (!is_empty(fetch_next)) lets.emplace_back(fetched, fetched_column(first));
    std::vector<ExprRef> a;
    for (int64_t i = 0; i < p_.tile_rows; ++i) {
      ExprRef row = smaller(sum(first, index(i)), minus_one(m_count));
      if (p_.a_direct) {
        VarMap values = depth_at(k, p_.run_start);
        Lets axes = row_axes(sum(m0, row), &values);
        lets.insert(lets.end(), axes.begin(), axes.end());
        a.push_back(substitute(p_.a, values));
      } else {
        auto base = var("base", i64);
        lets.emplace_back(base, binary(BinaryOp::kMul, row, dim_value(p_.row_stride)));
        a.push_back(load(a_pack_, {sum(base, k)}));
      }
    }
    auto each = [&](const std::function<StmtRef(const ExprRef& at, int64_t vector)>& body) {
      return each_vector(lane, p_.lanes, p_.tile_rows * p_.tiling.vectors,
                         [&](int64_t i) { return body(sum(index(i * p_.lanes), lane), i); });
    };
    StmtRef clear = each([&](const ExprRef& at, int64_t) { return store(acc, {at}, zero()); });
    StmtRef keep =
        each([&](const ExprRef& at, int64_t) { return store(done, {at}, load(acc, {at})); });
    // Row by row: an element of `a` is in a register only for its own row. Column by column, those
    // of all rows would be, next to the partial sums.
    StmtRef steps = each([&](const ExprRef& at, int64_t vector) {
      const auto row = static_cast<size_t>(vector / p_.tiling.vectors);
      ExprRef column = sum(index(vector % p_.tiling.vectors * p_.lanes), lane);
      ExprRef b = p_.b_direct ? b_at(place, sum(n, column))
                              : load(b_pack_, {sum(scaled(place, p_.width), column)});
      return store(acc, {at}, sum(load(acc, {at}), multiply(a[row], b)));
    });
    StmtRef loop =
        for_loop(k, index(0), dim_value(p_.run), ForKind::kSerial, seq({steps, fetch_next}));
    loop = outer_loops(std::span(w_.reduce).first(p_.run_start), false, loop);
    StmtRef compute = with_lets(lets, alloc(acc, seq({clear, loop, keep})));
    return alloc(done, seq({compute, finish(done, m0, m_count, first, first, n)}));
  }

  // The same in matrices. Their rows are at a constant distance, so that the last tile of rows that
  // are read in place begins earlier, at rows that the one before has computed.
  StmtRef matrix_tile(const ExprRef& m0, const ExprRef& m_count, const ExprRef& first,
                      const ExprRef& n) {
    const auto done = buffer("tile", w_.accumulate, {Dim(p_.tile_rows * p_.width)});
    const MatrixLoops loops = {var("row", i64), var("column", i64), var("k", i64),
                               p_.tile_rows,    p_.width,           *p_.depth.as_const()};
    const auto start = var("start", i64), fetched = var("fetched", i64);
    ExprRef begin = first, left;
    if (p_.a_direct) {
      const ExprRef last = difference(dim_value(p_.rows), index(p_.tile_rows));
      begin = difference(smaller(sum(m0, first), last), m0);
      VarMap values = depth_at(loops.step);
      values[p_.m.front().var.get()] = sum(sum(m0, start), loops.row);
      left = substitute(p_.a, values);
    } else {
      const ExprRef row = binary(BinaryOp::kMul, sum(start, loops.row), dim_value(p_.row_stride));
      left = load(a_pack_, {sum(row, loops.step)});
    }
    const ExprRef right = p_.b_direct
                              ? b_at(loops.step, sum(n, loops.column))
                              : load(b_pack_, {sum(scaled(loops.step, p_.width), loops.column)});
    const StmtRef next = fetch(loops.step, fetched);
    StmtRef product = byte_matrix(loops, done, left, right, next);
    if (!is_empty(next)) product = let(fetched, fetched_column(first), product);
    return let(start, begin,
               alloc(done, seq({product, finish(done, m0, m_count, first, start, n)})));
  }

  // The first column of the vector of the next panel that the tile which begins at row `first`
  // fetches, a vector of each row.
  ExprRef fetched_column(const ExprRef& first) const {
    const ExprRef tile = quotient(first, index(p_.tile_rows));
    return scaled(smaller(tile, index(p_.tiling.vectors - 1)), p_.lanes);
  }

  // Fetches step `k` of the next panel meanwhile, since its weights come from memory. That of the
  // last panel is outside `b`.
  StmtRef fetch(const ExprRef& k, const ExprRef& column) const {
    if (!p_.panels || !p_.b_direct) return seq({});
    VarMap next = depth_at(k);
    next[p_.x.var.get()] = column;
    next[p_.panels->var.get()] = sum(p_.panels->var, index(1));
    for (const Load* l : loads_in(p_.b)) {
      bool varies = false, fails = false;
      for (const ExprRef& i : l->indices) {
        varies = varies || depends_on(i, w_.reduce.back().var);
        fails = fails || any_can_fail(i);
      }
      if (!varies || fails) continue;
      return prefetch(l->buffer,
                      l->indices.map([&](const ExprRef& i) { return substitute(i, next); }));
    }
    return seq({});
  }

  ExprRef multiply(const ExprRef& a, const ExprRef& b) const {
    return p_.swapped ? binary(p_.op, b, a) : binary(p_.op, a, b);
  }

  ExprRef b_at(const ExprRef& k, const ExprRef& column) const {
    VarMap values = depth_at(k);
    values[p_.x.var.get()] = column;
    return substitute(p_.b, values);
  }

  // Applies the stages after the sum to the rows, from `first` on, and columns of the tile that
  // exist. The tile in `done` begins at row `start`.
  StmtRef finish(const Ref<const Buffer>& done, const ExprRef& m0, const ExprRef& m_count,
                 const ExprRef& first, const ExprRef& start, const ExprRef& n) {
    auto i = var("tile_row", i64);
    ExprRef column = difference(p_.x.var, n);
    const ExprRef row_of_tile = start == first ? ExprRef(i) : sum(difference(first, start), i);
    StmtRef point =
        let(sum_, load(done, {sum(scaled(row_of_tile, p_.width), column)}), store_results(after_));
    ExprRef width = smaller(index(p_.width), difference(dim_value(p_.x.extent), n));
    StmtRef row = vector_range(p_.x.var, n, width, p_.lanes, point);
    ExprRef rows = smaller(index(p_.tile_rows), difference(m_count, first));
    return for_loop(i, index(0), rows, ForKind::kSerial,
                    with_lets(row_axes(sum(m0, sum(first, i)), nullptr), row));
  }

  const Work& w_;
  const Ref<const Var>& sum_;
  const std::vector<Work>& after_;
  const ScheduleOptions& options_;
  const bool parallel_;
  const ContractionPlan p_;
  Ref<const Buffer> a_pack_, b_pack_;  // of operands that aren't read in place
};

}  // namespace

StmtRef schedule_contraction(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                             const ScheduleOptions& options, bool parallel) {
  collapse(&w, &after);
  auto plan = plan_contraction(w, after, options);
  if (!plan) return nullptr;
  return ContractionNest(w, sum, after, options, parallel, std::move(*plan)).run();
}

}  // namespace tenon::loop
