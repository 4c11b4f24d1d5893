// Sums of products: matrix products and convolutions.
//
//   result[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]
//
// n is the last axis of the result, m all axes that only `a` has, k all axes that are summed over.
// Tiles of rows x columns are accumulated in registers over all of k, from columns of `b` that are
// packed side by side (unless they already are) and rows of `a`, which are read in place or packed,
// one block of rows at a time (for a convolution, this is im2col). The pointwise stages that follow
// run on each tile while it is in the first-level cache.
//
// A dot product of bytes (BinaryOp::kByteDot) may take the place of the multiplication: then the
// operands are words of four numbers each, and k counts words. Where registers hold matrices, they
// hold the sums of larger tiles (byte_matrix.h), whose rows are read at a constant distance: in
// place only if one axis counts them.
//
// Padding is multiplied as zeros. Columns of the last panel that the result lacks are computed, but
// not stored.
#include <algorithm>
#include <utility>

#include "loop/affine.h"
#include "loop/byte_matrix.h"
#include "loop/nest.h"
#include "loop/symbol_set.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kFewRows = 4, kNarrowRows = 6;
constexpr int64_t kShortestRun = 3;  // steps of the sum that an operand is read in place for
constexpr int64_t kMatrixRows = 32, kMatrixColumns = 16;  // two registers of 16 rows and words
constexpr int64_t kFewestMatrixSteps = 8, kMostMatrixTiles = 16;

struct Factors {
  BinaryOp op;  // kMul or kByteDot
  ExprRef a, b;
};

std::optional<Factors> factors_of(const ExprRef& body) {
  if (body->kind != ExprKind::kBinary) return std::nullopt;
  const auto& b = static_cast<const Binary&>(*body);
  if (b.op != BinaryOp::kMul && b.op != BinaryOp::kByteDot) return std::nullopt;
  return Factors{b.op, b.a, b.b};
}

bool uses(const ExprRef& e, const Axis& a) {
  return depends_on(e, a.var);
}

ExprRef minus_one(const ExprRef& a) {
  return difference(a, index(1));
}

class ContractionSchedule {
 public:
  ContractionSchedule(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                      const ScheduleOptions& options)
      : w_(std::move(w)), sum_(sum), after_(std::move(after)), options_(options) {}

  StmtRef run() {
    collapse(&w_, &after_);
    if (!classify()) return nullptr;
    cut_tiles();
    find_panels();
    find_direct_operands();
    share_tiles();

    StmtRef tiles = all_tiles(false);
    if (rows_.is_const() || !is_contiguous(b_, x_)) return tiles;
    if (panels_at_once() > 1 && tile_rows_ > kNarrowRows) {
      tiles = if_then(less(dim_value(rows_), index(kNarrowRows + 1)), narrow_tiles(), tiles);
    }
    return if_then(less(dim_value(rows_), index(kFewRows)), few_rows(), tiles);
  }

 private:
  // Tiles of all results; `one_block`: their rows fit in one block.
  StmtRef all_tiles(bool one_block) {
    auto block_m = var("block_m", i64), block_n = var("block_n", i64);
    std::vector<Axis> tasks = batch_;
    tasks.push_back({block_n, panels_ ? ceildiv(panels_->extent, Dim(tiling_.column_tiles))
                                      : ceildiv(x_.extent, Dim(block_columns_))});
    if (!one_block) {
      tasks.insert(rows_first_ ? tasks.end() - 1 : tasks.end(), {block_m, ceildiv(rows_, block_)});
    }
    auto m0 = var("m0", i64), n0 = var("n0", i64), m_count = var("rows", i64),
         n_count = var("columns", i64);
    if (!a_direct_) a_pack_ = buffer("a_pack", w_.accumulate, {Dim(block_rows_) * row_stride_});
    if (!b_direct_) b_pack_ = buffer("b_pack", w_.accumulate, {depth_ * Dim(width_)});
    StmtRef body = columns(m0, m_count, n0, n_count);
    if (!a_direct_) body = alloc(a_pack_, seq({pack_a(m0, m_count), body}));
    ExprRef rows_left = difference(dim_value(rows_), m0);
    // If `b` is packed in panels, columns are counted in panels.
    const int64_t block_n_size = panels_ ? tiling_.column_tiles : block_columns_;
    ExprRef columns_left = difference(dim_value(panels_ ? panels_->extent : x_.extent), n0);
    const ExprRef block = dim_value(block_);
    body = let(m0, one_block ? index(0) : binary(BinaryOp::kMul, block_m, block),
               let(n0, scaled(block_n, block_n_size),
                   let(m_count, smaller(block, rows_left),
                       let(n_count, smaller(index(block_n_size), columns_left), body))));
    return outer_loops(tasks, true, body);
  }

  // Tiles of up to kNarrowRows rows, for that many: a tile computes all rows that it has.
  StmtRef narrow_tiles() {
    const bool in_matrices = std::exchange(in_matrices_, false);
    const int64_t tile_rows = std::exchange(tile_rows_, kNarrowRows);
    const int64_t block_rows = std::exchange(block_rows_, kNarrowRows);
    const Dim block = std::exchange(block_, Dim(kNarrowRows));
    StmtRef tiles = all_tiles(true);
    tile_rows_ = tile_rows;
    block_rows_ = block_rows;
    block_ = block;
    in_matrices_ = in_matrices;
    return tiles;
  }

  // Row by row: a row times a matrix reads each element of `b` once, so packing would cost more
  // than it gains.
  StmtRef few_rows() {
    if (const int64_t panels = panels_at_once(); panels > 1) return few_rows(panels);
    const Row row = row_of(w_.body, {x_}, x_.extent, x_.var);
    std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 1);
    return outer_loops(outer, true, alloc(row.buffer, seq({row.sums, row.rest})));
  }

  // Several panels at once, since one has too few partial sums to hide the latency of an addition:
  // all rows read them while they are in a cache.
  StmtRef few_rows(int64_t panels) {
    auto block = var("block", i64), panel = var("panel", i64);
    const ExprRef in_block = sum(scaled(block, panels), panel),
                  place = sum(scaled(panel, width_), x_.var);
    const Row row = row_of(substitute(w_.body, {{panels_->var.get(), in_block}}),
                           {{panel, Dim(panels)}, x_}, Dim(panels * width_), place);
    StmtRef rest = for_loop(panel, index(0), index(panels), ForKind::kSerial,
                            let(panels_->var, in_block, row.rest));
    const std::vector<Axis> rows(w_.axes.begin(), w_.axes.end() - 2);
    return for_loop(block, index(0), index(*panels_->extent.as_const() / panels),
                    ForKind::kParallel,
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
    return {row.out, sums, vector_range(x_.var, index(0), dim_value(x_.extent), lanes_, point)};
  }

  // The most panels, up to 8, that divide their number.
  int64_t panels_at_once() const {
    const auto all = panels_ ? panels_->extent.as_const() : std::nullopt;
    if (!all || *all == 0) return 1;
    int64_t panels = std::min<int64_t>(8, *all);
    while (*all % panels != 0) --panels;
    return panels;
  }

  bool classify() {
    auto factors = factors_of(w_.body);
    if (!factors || w_.reduction != Reduction::kSum || w_.body->dtype != w_.accumulate ||
        w_.axes.size() < 2 || w_.reduce.empty()) {
      return false;
    }
    a_ = factors->a;
    b_ = factors->b;
    x_ = w_.axes.back();
    op_ = factors->op;
    swapped_ = uses(a_, x_);
    if (swapped_) std::swap(a_, b_);
    if (uses(a_, x_) || !uses(b_, x_)) return false;
    for (size_t i = 0; i + 1 < w_.axes.size(); ++i) {
      const Axis& axis = w_.axes[i];
      (uses(a_, axis) && !uses(b_, axis) ? m_ : batch_).push_back(axis);
    }
    if (m_.empty()) return false;
    for (const Axis& a : m_) rows_ = rows_ * a.extent;
    for (const Axis& a : w_.reduce) depth_ = depth_ * a.extent;
    auto few = [](const Dim& d, int64_t least) { return d.is_const() && *d.as_const() < least; };
    return !few(rows_, 2) && !few(x_.extent, 4) && !few(depth_, 3);
  }

  // The tiling chosen for this shape, reduced to its size: of the same number of tiles, those that
  // leave the fewest rows of the last one empty, since a row that a tile lacks costs as much as one
  // that it has.
  void cut_tiles() {
    tiling_ =
        options_.tiling({w_.accumulate, x_.extent.as_const(), depth_.as_const()}, options_.target);
    lanes_ = vector_lanes(w_.accumulate.bytes(), options_.target);
    width_ = panel_width(tiling_, w_.accumulate, options_.target);
    const bool matrices = multiplies_matrices();
    if (matrices) {
      // They multiply so fast that reading the words again for each block of rows would take
      // longer.
      const int64_t rows =
          options_.target.l2_bytes / 2 / w_.accumulate.bytes() / *depth_.as_const();
      tiling_.row_tiles = std::clamp<int64_t>(rows / kMatrixRows, 1, kMostMatrixTiles);
      tiling_.rows = kMatrixRows;
    }
    tile_rows_ = tiling_.rows;
    if (auto m = rows_.as_const()) tile_rows_ = pieces(*m, pieces(*m, tile_rows_));
    in_matrices_ = matrices && tile_rows_ > kNarrowRows;
    block_rows_ = tile_rows_ * tiling_.row_tiles;
    block_columns_ = width_ * tiling_.column_tiles;
    cut_block(rows_, tile_rows_, &block_rows_);
    cut_block(x_.extent, width_, &block_columns_);
  }
  // Whether registers that hold matrices compute such sums.
  bool multiplies_matrices() const {
    const auto depth = depth_.as_const();
    return options_.target.byte_matrices && op_ == BinaryOp::kByteDot && !swapped_ &&
           w_.accumulate == i32 && depth && *depth >= kFewestMatrixSteps &&
           width_ % kMatrixColumns == 0;
  }
  // How threads share the tiles. They take consecutive blocks, of the same rows first unless `b` is
  // large in comparison: then each reads only its own columns of `b`. Blocks have equal numbers of
  // tiles, so that the shares of the rows are about equal, as in the kernels before and after, and
  // rows stay in the cache of the thread that reads them next. Where nothing is packed for a block,
  // there is an even number of them, for two threads, and they have as few columns as possible, so
  // that threads end together.
  void share_tiles() {
    // What a byte of another thread's cache costs, in bytes of `b`.
    constexpr int64_t kTransfer = 8;
    const auto rows = rows_.as_const(), depth = depth_.as_const();
    int64_t result_bytes = 0;
    for (const Work& a : after_) result_bytes += a.out->dtype.bytes();
    rows_first_ = !batch_.empty() || (!rows && !in_matrices_) || !depth ||
                  rows.value_or(0) >= *depth * w_.accumulate.bytes() / (kTransfer * result_bytes);
    if (is_simple(rows_)) {
      const bool pairs = batch_.empty() && b_direct_ && rows_first_ && !in_matrices_;
      const Dim tiles = ceildiv(rows_, Dim(tile_rows_)), most = Dim(block_rows_ / tile_rows_),
                blocks = pairs ? Dim(2) * ceildiv(tiles, Dim(2) * most) : ceildiv(tiles, most);
      block_ = max(ceildiv(tiles, max(blocks, Dim(1))), Dim(1)) * Dim(tile_rows_);
    } else {
      block_ = Dim(block_rows_);
    }
    if (a_direct_) tiling_.column_tiles = 1, block_columns_ = width_;
  }
  // Whether it costs little to divide it again and again.
  static bool is_simple(const Dim& d) {
    SymbolSet symbols;
    collect_symbols(d, &symbols);
    return symbols.size() <= 2;
  }
  static int64_t pieces(int64_t of, int64_t size) { return of / size + (of % size > 0); }
  // To as many tiles as a constant extent fills, the last one perhaps in part.
  static void cut_block(const Dim& extent, int64_t tile, int64_t* block) {
    const auto n = extent.as_const();
    if (n && *n < *block) *block = (*n + tile - 1) / tile * tile;
  }

  // The first summed axis from which on every load has a constant step along k; their number if
  // none does.
  size_t run_start(const ExprRef& e) const {
    size_t start = 0;
    for (const Load* l : loads_in(e)) {
      if (l->indices.empty()) continue;
      std::optional<Dim> inner;
      for (size_t i = w_.reduce.size(); i-- > start;) {
        auto c = coefficient(l->indices[0], w_.reduce[i].var);
        if (!c || (inner && !(*c == *inner))) {
          start = i + 1;
          break;
        }
        inner = *c * w_.reduce[i].extent;
      }
    }
    return start;
  }
  bool runs_through(const ExprRef& e) const { return run_start(e) == 0; }
  bool only_loads_use(const ExprRef& e, const std::vector<Axis>& axes) const {
    // Allows only casts around a load, or four bytes as a word, which are loaded at once: a direct
    // operand is recomputed for every tile.
    const Expr* inner = e.get();
    while (inner->kind == ExprKind::kCast) inner = static_cast<const Cast*>(inner)->a.get();
    if (inner->kind == ExprKind::kBinary && op_ == BinaryOp::kByteDot) {
      const auto& parts = static_cast<const Binary&>(*inner);
      if (parts.op == BinaryOp::kShl) return only_loads_use(parts.a, axes);
      return parts.op == BinaryOp::kOr && only_loads_use(parts.a, axes) &&
             only_loads_use(parts.b, axes);
    }
    if (inner->kind != ExprKind::kLoad) return false;
    for (const ExprRef& i : static_cast<const Load*>(inner)->indices) {
      for (const Axis& a : axes) {
        if (!coefficient(i, a.var)) return false;
      }
      if (!loads_in(i).empty()) return false;
    }
    return true;
  }
  std::optional<Dim> load_coefficient(const ExprRef& e, const Axis& axis) const {
    std::optional<Dim> c;
    for (const Load* l : loads_in(e)) {
      if (l->indices.empty()) continue;
      auto d = coefficient(l->indices[0], axis.var);
      if (!d || (c && !(*c == *d))) return std::nullopt;
      c = d;
    }
    return c;
  }
  bool is_contiguous(const ExprRef& e, const Axis& axis) const {
    auto c = load_coefficient(e, axis);
    return c && c->is_const(1);
  }

  // If `b` is in panels as wide as a tile, the axis before its columns counts them: a block takes
  // several panels, so that the rows of `a` are packed once for all of them.
  void find_panels() {
    if (batch_.empty() || !x_.extent.is_const(width_)) return;
    const Axis& last = batch_.back();
    if (last.var != w_.axes[w_.axes.size() - 2].var || uses(a_, last) || !uses(b_, last)) return;
    panels_ = last;
    batch_.pop_back();
  }

  // Symbolic sizes may be the long steps that a tiling rules out.
  void find_direct_operands() {
    auto n = x_.extent.as_const();
    run_start_ = run_start(a_);
    run_ = 1;
    for (size_t i = run_start_; i < w_.reduce.size(); ++i) run_ = run_ * w_.reduce[i].extent;
    const auto run = run_.as_const();
    a_direct_ = only_loads_use(a_, m_) && run && *run <= tiling_.direct_depth &&
                (run_start_ == 0 || *run >= kShortestRun);
    if (in_matrices_) a_direct_ = a_direct_ && has_even_rows();
    if (!a_direct_) run_start_ = 0, run_ = depth_;
    b_direct_ = only_loads_use(b_, {x_}) && runs_through(b_) && is_contiguous(b_, x_) && n &&
                *n % width_ == 0 && *n <= tiling_.direct_columns;
    row_stride_ = depth_ + Dim(lanes_);
  }

  // Whether the rows of `a` are all a tile's and at a constant distance, and each a row of words.
  bool has_even_rows() const {
    const auto rows = rows_.as_const();
    const Load* const words = load_of_word(a_);
    return run_start_ == 0 && m_.size() == 1 && rows && *rows >= tile_rows_ && words &&
           load_coefficient(a_, w_.reduce.back())
               ->is_const(words->dtype == i32 ? 1 : kBytesPerWord);
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
    for (size_t i = 0; i < run_start_; ++i) {
      runs = sum(binary(BinaryOp::kMul, runs, dim_value(w_.reduce[i].extent)), w_.reduce[i].var);
    }
    return sum(binary(BinaryOp::kMul, runs, dim_value(run_)), k);
  }
  // Lets for the axes of m at row `m`; with `values`, the variables are fresh.
  Lets row_axes(const ExprRef& m, VarMap* values) const {
    Lets lets;
    auto rest = var("row", i64);
    lets.emplace_back(rest, m);
    ExprRef left = rest;
    for (size_t i = m_.size(); i-- > 0;) {
      auto v = values ? var(m_[i].var->name.view(), i64) : m_[i].var;
      if (values) (*values)[m_[i].var.get()] = v;
      ExprRef extent = dim_value(m_[i].extent);
      lets.emplace_back(v, i == 0 ? left : binary(BinaryOp::kMod, left, extent));
      if (i > 0) left = quotient(left, extent);
    }
    return lets;
  }

  // ---- packing

  // a_pack[row * row_stride_ + k], for the rows of the block; of tiles in matrices, the last row is
  // repeated up to the end of a tile.
  StmtRef pack_a(const ExprRef& m0, const ExprRef& rows) {
    auto row = var("pack_row", i64);
    const Axis& k = w_.reduce.back();
    ExprRef at = sum(binary(BinaryOp::kMul, row, dim_value(row_stride_)), flat_depth());
    ExprRef place = flat_offset(a_pack_->shape, {at}, w_.vars());
    StmtRef element = store(a_pack_, {place}, a_);
    const Load* const word = load_of_word(a_);
    const bool in_words = word && coefficient(word->indices[0], k.var) == Dim(kBytesPerWord);
    StmtRef body = is_contiguous(a_, k) || in_words
                       ? vector_range(k.var, index(0), dim_value(k.extent), lanes_, element)
                       : for_loop(k.var, index(0), dim_value(k.extent), ForKind::kSerial, element);
    body = outer_reduce_loops(body);
    ExprRef count = rows, packed = row;
    if (in_matrices_) {
      count = scaled(tiles_of(rows), tile_rows_);
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
    ExprRef end = dim_value(x_.extent);
    auto lane = var("lane", i64);
    auto element = [&](const ExprRef& column, const ExprRef& at) {
      ExprRef value = substitute(b_, {{x_.var.get(), at}});
      return store(b_pack_, {sum(scaled(flat_depth(), width_), column)}, value);
    };
    if (is_contiguous(b_, x_)) {
      auto fill = [&](bool masked) {
        StmtRef all = each_vector(lane, lanes_, tiling_.vectors, [&](int64_t u) {
          ExprRef column = sum(index(u * lanes_), lane), at = sum(n, column);
          ExprRef value = substitute(b_, {{x_.var.get(), at}});
          if (masked) value = select(less(at, end), value, zero());
          return store(b_pack_, {sum(scaled(flat_depth(), width_), column)}, value);
        });
        return outer_reduce_loops(
            for_loop(k.var, index(0), dim_value(k.extent), ForKind::kSerial, all));
      };
      return if_then(binary(BinaryOp::kLe, sum(n, index(width_)), end), fill(false), fill(true));
    }
    // One column at a time, a cache line of k at once. Columns beyond the last repeat it.
    constexpr int64_t kLine = 16;
    auto column = var("column", i64), line = var("line", i64);
    ExprRef first = scaled(line, kLine), depth = dim_value(k.extent);
    StmtRef body =
        for_loop(k.var, first, smaller(index(kLine), difference(depth, first)), ForKind::kSerial,
                 element(column, smaller(sum(n, column), minus_one(end))));
    body = for_loop(column, index(0), index(width_), ForKind::kSerial, body);
    body =
        for_loop(line, index(0), dim_value(ceildiv(k.extent, Dim(kLine))), ForKind::kSerial, body);
    return outer_reduce_loops(body);
  }

  // ---- the tiles of a block

  ExprRef zero() const { return identity(Reduction::kSum, w_.accumulate); }
  ExprRef tiles_of(const ExprRef& rows) const {
    return quotient(sum(rows, index(tile_rows_ - 1)), index(tile_rows_));
  }

  StmtRef columns(const ExprRef& m0, const ExprRef& m_count, const ExprRef& n0,
                  const ExprRef& n_count) {
    auto tile_n = var("tile_n", i64), n = var("n", i64), tile_m = var("tile_m", i64),
         first = var("first", i64);
    const ExprRef start = scaled(tile_m, tile_rows_);
    const StmtRef body_of_tile =
        in_matrices_ ? matrix_tile(m0, m_count, first, n) : tile(m0, m_count, first, n);
    StmtRef tiles = for_loop(tile_m, index(0), tiles_of(m_count), ForKind::kSerial,
                             let(first, start, body_of_tile));
    StmtRef body = b_direct_ ? tiles : seq({pack_b(n), tiles});
    if (panels_) {
      body = let(n, index(0), let(panels_->var, sum(n0, tile_n), body));
      body = for_loop(tile_n, index(0), n_count, ForKind::kSerial, body);
      return b_direct_ ? body : alloc(b_pack_, body);
    }
    body = for_loop(tile_n, index(0), quotient(sum(n_count, index(width_ - 1)), index(width_)),
                    ForKind::kSerial, let(n, sum(n0, scaled(tile_n, width_)), body));
    return b_direct_ ? body : alloc(b_pack_, body);
  }

  // Rows first... of the block that starts at m0, columns n...
  StmtRef tile(const ExprRef& m0, const ExprRef& m_count, const ExprRef& first, const ExprRef& n) {
    auto acc = buffer("acc", w_.accumulate, {Dim(tile_rows_ * width_)});
    auto done = buffer("tile", w_.accumulate, {Dim(tile_rows_ * width_)});
    auto lane = var("lane", i64), k = var("k", i64);

    // Rows beyond the last compute it again and aren't stored.
    Lets lets;
    const ExprRef place = step_of_all(k);
    const auto fetched = var("fetched", i64);
    const StmtRef fetch_next = fetch(place, fetched);
    if (!is_empty(fetch_next)) lets.emplace_back(fetched, fetched_column(first));
    std::vector<ExprRef> a;
    for (int64_t i = 0; i < tile_rows_; ++i) {
      ExprRef row = smaller(sum(first, index(i)), minus_one(m_count));
      if (a_direct_) {
        VarMap values = depth_at(k, run_start_);
        Lets axes = row_axes(sum(m0, row), &values);
        lets.insert(lets.end(), axes.begin(), axes.end());
        a.push_back(substitute(a_, values));
      } else {
        auto base = var("base", i64);
        lets.emplace_back(base, binary(BinaryOp::kMul, row, dim_value(row_stride_)));
        a.push_back(load(a_pack_, {sum(base, k)}));
      }
    }
    auto each = [&](const std::function<StmtRef(const ExprRef& at, int64_t vector)>& body) {
      return each_vector(lane, lanes_, tile_rows_ * tiling_.vectors,
                         [&](int64_t i) { return body(sum(index(i * lanes_), lane), i); });
    };
    StmtRef clear = each([&](const ExprRef& at, int64_t) { return store(acc, {at}, zero()); });
    StmtRef keep =
        each([&](const ExprRef& at, int64_t) { return store(done, {at}, load(acc, {at})); });
    // Row by row: an element of `a` is in a register only for its own row. Column by column, those
    // of all rows would be, next to the partial sums.
    StmtRef steps = each([&](const ExprRef& at, int64_t vector) {
      const auto row = static_cast<size_t>(vector / tiling_.vectors);
      ExprRef column = sum(index(vector % tiling_.vectors * lanes_), lane);
      ExprRef b = b_direct_ ? b_at(place, sum(n, column))
                            : load(b_pack_, {sum(scaled(place, width_), column)});
      return store(acc, {at}, sum(load(acc, {at}), multiply(a[row], b)));
    });
    StmtRef loop =
        for_loop(k, index(0), dim_value(run_), ForKind::kSerial, seq({steps, fetch_next}));
    loop = outer_loops(std::span(w_.reduce).first(run_start_), false, loop);
    StmtRef compute = with_lets(lets, alloc(acc, seq({clear, loop, keep})));
    return alloc(done, seq({compute, finish(done, m0, m_count, first, first, n)}));
  }

  // The same in matrices. Their rows are at a constant distance, so that the last tile of rows that
  // are read in place begins earlier, at rows that the one before has computed.
  StmtRef matrix_tile(const ExprRef& m0, const ExprRef& m_count, const ExprRef& first,
                      const ExprRef& n) {
    const auto done = buffer("tile", w_.accumulate, {Dim(tile_rows_ * width_)});
    const MatrixLoops loops = {var("row", i64), var("column", i64), var("k", i64), tile_rows_,
                               width_,          *depth_.as_const()};
    const auto start = var("start", i64), fetched = var("fetched", i64);
    ExprRef begin = first, left;
    if (a_direct_) {
      const ExprRef last = difference(dim_value(rows_), index(tile_rows_));
      begin = difference(smaller(sum(m0, first), last), m0);
      VarMap values = depth_at(loops.step);
      values[m_.front().var.get()] = sum(sum(m0, start), loops.row);
      left = substitute(a_, values);
    } else {
      const ExprRef row = binary(BinaryOp::kMul, sum(start, loops.row), dim_value(row_stride_));
      left = load(a_pack_, {sum(row, loops.step)});
    }
    const ExprRef right = b_direct_
                              ? b_at(loops.step, sum(n, loops.column))
                              : load(b_pack_, {sum(scaled(loops.step, width_), loops.column)});
    const StmtRef next = fetch(loops.step, fetched);
    StmtRef product = byte_matrix(loops, done, left, right, next);
    if (!is_empty(next)) product = let(fetched, fetched_column(first), product);
    return let(start, begin,
               alloc(done, seq({product, finish(done, m0, m_count, first, start, n)})));
  }

  // The first column of the vector of the next panel that the tile which begins at row `first`
  // fetches, a vector of each row.
  ExprRef fetched_column(const ExprRef& first) const {
    const ExprRef tile = quotient(first, index(tile_rows_));
    return scaled(smaller(tile, index(tiling_.vectors - 1)), lanes_);
  }

  // Fetches step `k` of the next panel meanwhile, since its weights come from memory. That of the
  // last panel is outside `b`.
  StmtRef fetch(const ExprRef& k, const ExprRef& column) const {
    if (!panels_ || !b_direct_) return seq({});
    VarMap next = depth_at(k);
    next[x_.var.get()] = column;
    next[panels_->var.get()] = sum(panels_->var, index(1));
    for (const Load* l : loads_in(b_)) {
      bool varies = false, fails = false;
      for (const ExprRef& i : l->indices) {
        varies = varies || depends_on(i, w_.reduce.back().var);
        post_order(i, [&](const ExprRef& e) { fails = fails || can_fail(*e); });
      }
      if (!varies || fails) continue;
      return prefetch(l->buffer,
                      l->indices.map([&](const ExprRef& i) { return substitute(i, next); }));
    }
    return seq({});
  }

  ExprRef multiply(const ExprRef& a, const ExprRef& b) const {
    return swapped_ ? binary(op_, b, a) : binary(op_, a, b);
  }

  ExprRef b_at(const ExprRef& k, const ExprRef& column) const {
    VarMap values = depth_at(k);
    values[x_.var.get()] = column;
    return substitute(b_, values);
  }

  // Applies the stages after the sum to the rows, from `first` on, and columns of the tile that
  // exist. The tile in `done` begins at row `start`.
  StmtRef finish(const Ref<const Buffer>& done, const ExprRef& m0, const ExprRef& m_count,
                 const ExprRef& first, const ExprRef& start, const ExprRef& n) {
    auto i = var("tile_row", i64);
    ExprRef column = difference(x_.var, n);
    const ExprRef row_of_tile = start == first ? ExprRef(i) : sum(difference(first, start), i);
    StmtRef point =
        let(sum_, load(done, {sum(scaled(row_of_tile, width_), column)}), store_results(after_));
    ExprRef width = smaller(index(width_), difference(dim_value(x_.extent), n));
    StmtRef row = vector_range(x_.var, n, width, lanes_, point);
    ExprRef rows = smaller(index(tile_rows_), difference(m_count, first));
    return for_loop(i, index(0), rows, ForKind::kSerial,
                    with_lets(row_axes(sum(m0, sum(first, i)), nullptr), row));
  }

  Work w_;
  Ref<const Var> sum_;
  std::vector<Work> after_;
  const ScheduleOptions& options_;

  BinaryOp op_ = BinaryOp::kMul;
  bool swapped_ = false;  // whether a_ is the second operand
  ExprRef a_, b_;
  Axis x_;
  std::vector<Axis> m_, batch_;
  std::optional<Axis> panels_;
  Dim rows_ = 1, depth_ = 1, row_stride_ = 1;
  // `a` is read in runs over the summed axes from `run_start_` on, of `run_` steps.
  size_t run_start_ = 0;
  Dim run_ = 1;
  Tiling tiling_;
  int64_t lanes_ = 0, width_ = 0, tile_rows_ = 0, block_columns_ = 0;
  int64_t block_rows_ = 0;  // the most
  Dim block_ = 1;           // rows
  bool rows_first_ = true;
  bool a_direct_ = false, b_direct_ = false;
  bool in_matrices_ = false;  // whether registers that hold matrices compute the tiles
  Ref<const Buffer> a_pack_, b_pack_;
};

}  // namespace

bool is_contraction(const Stage& s) {
  return s.kind == StageKind::kReduce && s.reduction == Reduction::kSum && factors_of(s.body);
}

StmtRef schedule_contraction(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                             const ScheduleOptions& options) {
  return ContractionSchedule(std::move(w), sum, std::move(after), options).run();
}

}  // namespace tenon::loop
