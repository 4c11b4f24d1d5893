#include "loop/contraction_plan.h"

#include <algorithm>
#include <utility>

#include "loop/byte_matrix.h"
#include "loop/symbol_set.h"
#include "support/rounding.h"

namespace tenon::loop {
namespace {

constexpr int64_t kShortestRun = 3;  // steps of the sum that an operand is read in place for
constexpr int64_t kMatrixRows = 32, kMatrixColumns = 16;  // two registers of 16 rows and words
constexpr int64_t kFewestMatrixSteps = 8, kMostMatrixTiles = 16;
constexpr int64_t kMostNodes = 1 << 13;  // of a direct operand, written out for each vector or row
constexpr int64_t kMostParts = 3 * kBytesPerWord;  // of a word: its bytes, shifts and unions

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

// How far apart all loads in `e` are along the axis; nullopt if they differ.
std::optional<Dim> load_coefficient(const ExprRef& e, const Axis& axis) {
  std::optional<Dim> c;
  for (const Load* l : loads_in(e)) {
    if (l->indices.empty()) continue;
    auto d = coefficient(l->indices[0], axis.var);
    if (!d || (c && !(*c == *d))) return std::nullopt;
    c = d;
  }
  return c;
}

// Whether it costs little to divide it again and again.
bool is_simple(const Dim& d) {
  SymbolSet symbols;
  collect_symbols(d, &symbols);
  return symbols.size() <= 2;
}

// To as many tiles as a constant extent fills, the last one perhaps in part.
void cut_block(const Dim& extent, int64_t tile, int64_t* block) {
  const auto n = extent.as_const();
  if (n && *n < *block) *block = round_up(*n, tile);
}

class Planner {
 public:
  Planner(const Work& w, const std::vector<Work>& after, const ScheduleOptions& options)
      : w_(w), after_(after), options_(options) {}

  std::optional<ContractionPlan> run() {
    if (!classify()) return std::nullopt;
    cut_tiles();
    find_panels();
    find_direct_operands();
    share_tiles();
    return p_;
  }

 private:
  bool classify() {
    auto factors = factors_of(w_.body);
    if (!factors || w_.reduction != Reduction::kSum || w_.body->dtype != w_.accumulate ||
        w_.axes.size() < 2 || w_.reduce.empty()) {
      return false;
    }
    p_.a = factors->a;
    p_.b = factors->b;
    p_.x = w_.axes.back();
    p_.op = factors->op;
    p_.swapped = uses(p_.a, p_.x);
    if (p_.swapped) std::swap(p_.a, p_.b);
    if (uses(p_.a, p_.x) || !uses(p_.b, p_.x)) return false;
    for (size_t i = 0; i + 1 < w_.axes.size(); ++i) {
      const Axis& axis = w_.axes[i];
      (uses(p_.a, axis) && !uses(p_.b, axis) ? p_.m : p_.batch).push_back(axis);
    }
    if (p_.m.empty()) return false;
    for (const Axis& a : p_.m) p_.rows = p_.rows * a.extent;
    for (const Axis& a : w_.reduce) p_.depth = p_.depth * a.extent;
    auto few = [](const Dim& d, int64_t least) { return d.is_const() && *d.as_const() < least; };
    return !few(p_.rows, 2) && !few(p_.x.extent, 4) && !few(p_.depth, 3);
  }

  // The tiling chosen for this shape, reduced to its size: of the same number of tiles, those that
  // leave the fewest rows of the last one empty, since a row that a tile lacks costs as much as one
  // that it has.
  void cut_tiles() {
    p_.tiling = options_.tiling({w_.accumulate, p_.x.extent.as_const(), p_.depth.as_const()},
                                options_.target);
    p_.lanes = vector_lanes(w_.accumulate.bytes(), options_.target);
    p_.width = panel_width(p_.tiling, w_.accumulate, options_.target);
    const bool matrices = multiplies_matrices();
    if (matrices) {
      // They multiply so fast that reading the words again for each block of rows would take
      // longer.
      const int64_t rows =
          options_.target.l2_bytes / 2 / w_.accumulate.bytes() / *p_.depth.as_const();
      p_.tiling.row_tiles = std::clamp<int64_t>(rows / kMatrixRows, 1, kMostMatrixTiles);
      p_.tiling.rows = kMatrixRows;
    }
    p_.tile_rows = p_.tiling.rows;
    if (auto m = p_.rows.as_const()) p_.tile_rows = ceil_div(*m, ceil_div(*m, p_.tile_rows));
    p_.in_matrices = matrices && p_.tile_rows > kNarrowRows;
    p_.block_rows = p_.tile_rows * p_.tiling.row_tiles;
    p_.block_columns = p_.width * p_.tiling.column_tiles;
    cut_block(p_.rows, p_.tile_rows, &p_.block_rows);
    cut_block(p_.x.extent, p_.width, &p_.block_columns);
  }

  // Whether registers that hold matrices compute such sums.
  bool multiplies_matrices() const {
    const auto depth = p_.depth.as_const();
    return options_.target.byte_matrices && p_.op == BinaryOp::kByteDot && !p_.swapped &&
           w_.accumulate == i32 && depth && *depth >= kFewestMatrixSteps &&
           p_.width % kMatrixColumns == 0;
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
    const auto rows = p_.rows.as_const(), depth = p_.depth.as_const();
    int64_t result_bytes = 0;
    for (const Work& a : after_) result_bytes += a.out->dtype.bytes();
    p_.rows_first = !p_.batch.empty() || (!rows && !p_.in_matrices) || !depth ||
                    rows.value_or(0) >= *depth * w_.accumulate.bytes() / (kTransfer * result_bytes);
    if (is_simple(p_.rows)) {
      const bool pairs = p_.batch.empty() && p_.b_direct && p_.rows_first && !p_.in_matrices;
      const Dim tiles = ceildiv(p_.rows, Dim(p_.tile_rows)),
                most = Dim(p_.block_rows / p_.tile_rows),
                blocks = pairs ? Dim(2) * ceildiv(tiles, Dim(2) * most) : ceildiv(tiles, most);
      p_.block = max(ceildiv(tiles, max(blocks, Dim(1))), Dim(1)) * Dim(p_.tile_rows);
    } else {
      p_.block = Dim(p_.block_rows);
    }
    if (p_.a_direct) {
      p_.tiling.column_tiles = 1;
      p_.block_columns = p_.width;
    }
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

  // Whether the operand is a load, perhaps in casts, or a word of four bytes, which are loaded at
  // once, and the axes move it by constant steps: a direct operand is recomputed for every tile.
  bool only_loads_use(const ExprRef& e, const std::vector<Axis>& axes) const {
    std::vector<const Expr*> open{e.get()};
    // A graph of shared nodes may stand for an unlimited number of parts.
    for (int64_t parts = 0; !open.empty(); ++parts) {
      if (parts == kMostParts) return false;
      const Expr* inner = open.back();
      open.pop_back();
      while (inner->kind == ExprKind::kCast) inner = static_cast<const Cast*>(inner)->a.get();
      if (inner->kind == ExprKind::kBinary && p_.op == BinaryOp::kByteDot) {
        const auto& b = static_cast<const Binary&>(*inner);
        if (b.op != BinaryOp::kShl && b.op != BinaryOp::kOr) return false;
        if (b.op == BinaryOp::kOr) open.push_back(b.b.get());
        open.push_back(b.a.get());
        continue;
      }
      if (inner->kind != ExprKind::kLoad) return false;
      for (const ExprRef& i : static_cast<const Load*>(inner)->indices) {
        if (!loads_in(i).empty()) return false;
        for (const Axis& a : axes) {
          if (!coefficient(i, a.var)) return false;
        }
      }
    }
    return true;
  }

  // If `b` is in panels as wide as a tile, the axis before its columns counts them: a block takes
  // several panels, so that the rows of `a` are packed once for all of them.
  void find_panels() {
    if (p_.batch.empty() || !p_.x.extent.is_const(p_.width)) return;
    const Axis& last = p_.batch.back();
    if (last.var != w_.axes[w_.axes.size() - 2].var || uses(p_.a, last) || !uses(p_.b, last))
      return;
    p_.panels = last;
    p_.batch.pop_back();
  }

  // Symbolic sizes may be the long steps that a tiling rules out.
  void find_direct_operands() {
    auto n = p_.x.extent.as_const();
    p_.run_start = run_start(p_.a);
    p_.run = 1;
    for (size_t i = p_.run_start; i < w_.reduce.size(); ++i) p_.run = p_.run * w_.reduce[i].extent;
    const auto run = p_.run.as_const();
    p_.a_direct = only_loads_use(p_.a, p_.m) && run && *run <= p_.tiling.direct_depth &&
                  (p_.run_start == 0 || *run >= kShortestRun) &&
                  count_nodes(p_.a, kMostNodes) <= kMostNodes / p_.tile_rows;
    if (p_.in_matrices) p_.a_direct = p_.a_direct && has_even_rows();
    if (!p_.a_direct) {
      p_.run_start = 0;
      p_.run = p_.depth;
    }
    p_.b_direct = only_loads_use(p_.b, {p_.x}) && runs_through(p_.b) && is_contiguous(p_.b, p_.x) &&
                  n && *n % p_.width == 0 && *n <= p_.tiling.direct_columns &&
                  count_nodes(p_.b, kMostNodes) <= kMostNodes / (p_.tile_rows * p_.tiling.vectors);
    p_.row_stride = p_.depth + Dim(p_.lanes);
  }

  // Whether the rows of `a` are all a tile's and at a constant distance, and each a row of words.
  bool has_even_rows() const {
    const auto rows = p_.rows.as_const();
    const Load* const words = load_of_word(p_.a);
    return p_.run_start == 0 && p_.m.size() == 1 && rows && *rows >= p_.tile_rows && words &&
           load_coefficient(p_.a, w_.reduce.back())
               ->is_const(words->dtype == i32 ? 1 : kBytesPerWord);
  }

  const Work& w_;
  const std::vector<Work>& after_;
  const ScheduleOptions& options_;
  ContractionPlan p_;
};

}  // namespace

bool is_contiguous(const ExprRef& e, const Axis& axis) {
  auto c = load_coefficient(e, axis);
  return c && c->is_const(1);
}

std::optional<ContractionPlan> plan_contraction(const Work& w, const std::vector<Work>& after,
                                                const ScheduleOptions& options) {
  return Planner(w, after, options).run();
}

ContractionPlan narrowed(ContractionPlan plan) {
  plan.tile_rows = plan.block_rows = kNarrowRows;
  plan.block = Dim(kNarrowRows);
  plan.in_matrices = false;
  return plan;
}

bool is_contraction(const Stage& s) {
  return s.kind == StageKind::kReduce && s.reduction == Reduction::kSum && factors_of(s.body);
}

}  // namespace tenon::loop
