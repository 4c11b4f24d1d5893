#include "loop/tiling.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "support/error.h"
#include "support/rounding.h"

namespace tenon::loop {
namespace {

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

struct Row {
  int64_t vector_bytes, vector_registers;
  int64_t columns;  // the most that fit, in vectors
  Tiling tiling;
};

constexpr Row kTable[] = {
#define TENON_TILING(vector_bytes, vector_registers, columns, tile_rows, tile_vectors, row_tiles, \
                     column_tiles)                                                                \
  {vector_bytes, vector_registers, columns, {tile_rows, tile_vectors, row_tiles, column_tiles}},
#include "loop/tilings.def"
#undef TENON_TILING
};

bool fits(std::optional<int64_t> size, int64_t most) {
  return most == kAny || (size && *size <= most);
}

// A block packs rows of the left operand and reads them once per panel of columns, so they should
// stay in the second-level cache, which they share with that panel.
Tiling within_cache(Tiling tiling, const ContractionShape& shape, const TargetFacts& target) {
  if (!shape.depth || *shape.depth <= 0) return tiling;
  // The bytes of a row may exceed int64.
  const int64_t rows = target.l2_bytes / 2 / shape.dtype.bytes() / *shape.depth;
  tiling.row_tiles = std::clamp<int64_t>(rows / tiling.rows, 1, tiling.row_tiles);
  return tiling;
}

// Fewer vectors, and more rows instead, if that leaves fewer columns of the last tile empty. Of
// four vectors or three that leave as many, three read less of the right operand for each sum.
// Registers that hold matrices multiply vectors in pairs.
Tiling fitted_to_columns(Tiling tiling, int64_t vectors, bool in_pairs) {
  const int64_t sums = tiling.rows * tiling.vectors;
  const auto computed = [&](int64_t width) { return (vectors - 1) / width * width + width; };
  int64_t best = tiling.vectors;
  for (int64_t width = tiling.vectors - 1; width >= 2; --width) {
    if (in_pairs && width % 2 != 0) continue;
    const int64_t less = computed(best) - computed(width);
    if (less > 0 || (less == 0 && width == 3)) best = width;
  }
  if (best == tiling.vectors) return tiling;
  tiling.row_tiles = tiling.row_tiles * tiling.rows / (sums / best);
  tiling.column_tiles = tiling.column_tiles * tiling.vectors / best;
  tiling.rows = sums / best;
  tiling.vectors = best;
  return tiling;
}

}  // namespace

int64_t vector_lanes(int64_t element_bytes, const TargetFacts& target) {
  return std::clamp<int64_t>(target.vector_bytes / element_bytes, 2, 64);
}

int64_t panel_width(const Tiling& tiling, DataType dtype, const TargetFacts& target) {
  return tiling.vectors * vector_lanes(dtype.bytes(), target);
}

namespace {

int64_t tabled_panel(DataType dtype, int64_t columns, const TargetFacts& target) {
  return panel_width(tabled_tiling({dtype, columns, std::nullopt}, target), dtype, target);
}

}  // namespace

std::optional<int64_t> worthwhile_panel(DataType dtype, int64_t columns,
                                        const TargetFacts& target) {
  const int64_t width = tabled_panel(dtype, columns, target);
  // The zeros of the last panel are read, too: at most an eighth more than the columns.
  const int64_t padding = (width - columns % width) % width;
  if (columns <= width || padding > columns / 8) return std::nullopt;
  return width;
}

bool is_read_in_order(DataType dtype, int64_t columns, const TargetFacts& target) {
  return worthwhile_panel(dtype, columns, target) ||
         columns == tabled_panel(dtype, columns, target);
}

std::optional<int64_t> measured_winograd_tile(const ConvolutionShape& shape) {
  return fastest_winograd_tile(shape, {.per_weight = 21,
                                       .per_direct_weight = 14,
                                       .per_direct_product = 1.1,
                                       .per_tile_of_2 = 350,
                                       .per_tile_of_4 = 800});
}

int64_t tiles_of_windows(DataType dtype, int64_t channels, const TargetFacts& target) {
  constexpr int64_t kParts = 3;  // of a row
  const int64_t left = channels % vector_lanes(dtype.bytes(), target);
  return kParts * (1 + std::popcount(static_cast<uint64_t>(left)));
}

int64_t places_of_windows(DataType dtype, int64_t channels, int64_t steps,
                          const TargetFacts& target) {
  constexpr int64_t kMostSteps = 16;
  // Tiles are written out, all places of all steps. This many products are enough for the most
  // steps of whole vectors with 32 registers.
  constexpr int64_t kMostProducts = 576;
  const int64_t lanes = vector_lanes(dtype.bytes(), target);
  // The last of an odd number of channels would have a tile for itself, which takes as long as one
  // of a vector.
  if (channels < lanes || channels % 2 != 0 || steps < 2 || steps > kMostSteps) return 0;
  const int64_t tiles = tiles_of_windows(dtype, channels, target);
  // Sums stay in registers with an element of x for each and a vector of weights.
  const int64_t places = std::min(target.vector_registers * 3 / 8, kMostProducts / (steps * tiles));
  return places < kFewestPlaces ? 0 : places;
}

Tiling tabled_tiling(const ContractionShape& shape, const TargetFacts& target) {
  const int64_t lanes = std::max<int64_t>(target.vector_bytes / shape.dtype.bytes(), 1);
  std::optional<int64_t> vectors;
  if (shape.columns) vectors = ceil_div(*shape.columns, lanes);
  for (const Row& row : kTable) {
    if (row.vector_bytes == target.vector_bytes &&
        row.vector_registers == target.vector_registers && fits(vectors, row.columns)) {
      const bool in_pairs = target.byte_matrices && shape.dtype == i32;
      const Tiling tiling =
          vectors && *vectors > 0 ? fitted_to_columns(row.tiling, *vectors, in_pairs) : row.tiling;
      return within_cache(tiling, shape, target);
    }
  }
  TENON_ASSERT(false, "no tiling for vectors of ", target.vector_bytes, " bytes in ",
               target.vector_registers, " registers");
  return {};
}

}  // namespace tenon::loop
