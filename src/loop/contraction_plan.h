// How a sum of products, such as a matrix product or a convolution, is divided into tiles.
//
//   result[batch, m, x] = sum over k of a[batch, m, k] * b[batch, k, x]
//
// x is the last axis of the result, m all axes that only `a` has, k all axes that are summed over.
// A tile is `tile_rows` rows (of m) by `width` columns (of x), whose sums stay in registers over
// all of k. Tiles lie in blocks, which threads share:
//
//                  x: block_columns
//               +---------+---------+--
//               |  tile   |         |
//     m: block  +---------+---------+--     the rows of `a` are packed once for a block,
//               |         |         |       the columns of `b` once for a column of tiles
//               +---------+---------+--
//
// A dot product of bytes (BinaryOp::kByteDot) may take the place of the multiplication: then the
// operands are words of four numbers each, and k counts words. Where registers hold matrices, they
// hold the sums of larger tiles (byte_matrix.h), whose rows are read at a constant distance: in
// place only if one axis counts them.
//
// Private to the schedule_*.cc files.
#pragma once

#include <optional>

#include "loop/nest.h"

namespace tenon::loop {

// Where the number of rows isn't known, so many or fewer have tiles of their own, of so many rows.
inline constexpr int64_t kNarrowRows = 6;

struct ContractionPlan {
  // ---- what is summed

  BinaryOp op = BinaryOp::kMul;  // or kByteDot
  ExprRef a, b;                  // `b` depends on x, `a` doesn't
  bool swapped = false;          // whether `a` is op's second operand
  Axis x;
  std::vector<Axis> m, batch;
  Dim rows = 1, depth = 1;  // the extents of all of m and of all of k
  // Where `b` is in panels as wide as a tile, the axis that counts them; it isn't in `batch`.
  std::optional<Axis> panels;

  // ---- tiles

  Tiling tiling;           // as it was chosen, but with fewer tiles in a block where that is better
  int64_t lanes = 0;       // of a vector
  int64_t width = 0;       // the columns of a tile, `tiling.vectors` vectors
  int64_t tile_rows = 0;   // at most tiling.rows
  int64_t block_rows = 0;  // the most that a block has
  Dim block = 1;           // the rows that it has
  int64_t block_columns = 0;
  bool rows_first = true;    // whether consecutive blocks are of the same rows
  bool in_matrices = false;  // whether registers that hold matrices compute the tiles

  // ---- how operands are read

  // In place; otherwise from buffers into which they are packed.
  bool a_direct = false, b_direct = false;
  // `a` is read in runs over the summed axes from `run_start` on, of `run` steps: all of k if it is
  // packed.
  size_t run_start = 0;
  Dim run = 1;
  Dim row_stride = 1;  // from one packed row to the next
};

// The plan for the sum `w`, of which `after` makes results; nullopt if it isn't a sum of products
// of two operands that each have axes of the result that the other lacks, or is too small to gain.
std::optional<ContractionPlan> plan_contraction(const Work& w, const std::vector<Work>& after,
                                                const ScheduleOptions& options);

// The same for at most kNarrowRows rows, which are one tile and one block.
ContractionPlan narrowed(ContractionPlan plan);

// Whether all loads in `e` read neighbours along the axis.
bool is_contiguous(const ExprRef& e, const Axis& axis);

}  // namespace tenon::loop
