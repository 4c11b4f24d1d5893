// How sums of products are split into tiles: plain values passed to the schedules.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "object/dtype.h"
#include "support/winograd_cost.h"

namespace tenon::loop {

struct TargetFacts {
#define TENON_TARGET_FACT(type, name, initial, meaning) type name = initial;
#include "loop/target_facts.def"
  bool operator==(const TargetFacts&) const = default;
};

// A register tile accumulates `rows` rows of `vectors` vectors each. A task computes a block of
// row_tiles x column_tiles tiles; tilings larger than the operands are reduced.
struct Tiling {
  int64_t rows = 1, vectors = 1;
  int64_t row_tiles = 8, column_tiles = 8;
  // An operand is read in place instead of being packed into a buffer up to this many steps of the
  // sum (left operand) or columns (right operand): memory read with larger strides maps to few
  // cache lines.
  int64_t direct_depth = 512, direct_columns = 768;
};

// The properties that a choice may depend on; sizes are absent if they aren't constant.
struct ContractionShape {
  DataType dtype;  // of the accumulator
  std::optional<int64_t> columns, depth;
};

using ChooseTiling = std::function<Tiling(const ContractionShape&, const TargetFacts&)>;

// The lanes of a vector of elements of that size, as schedules count them: 2 to 64.
int64_t vector_lanes(int64_t element_bytes, const TargetFacts& target);
// The columns of a tile of sums of this type, and so of a panel of the right operand.
int64_t panel_width(const Tiling& tiling, DataType dtype, const TargetFacts& target);

// The choice from the table in tilings.def, with fewer vectors and more rows if they fit the
// columns better. Deterministic: the same arguments give the same tiling everywhere.
Tiling tabled_tiling(const ContractionShape& shape, const TargetFacts& target);

// The width of the panels into which a constant right operand of these columns, at least 1, is
// worth packing; nullopt if it has no more columns than one panel, or the last would hold too many
// zeros.
std::optional<int64_t> worthwhile_panel(DataType dtype, int64_t columns, const TargetFacts& target);
// Whether it is read once and in order: it is worth packing, or is itself one panel.
bool is_read_in_order(DataType dtype, int64_t columns, const TargetFacts& target);

// The size of the tiles of a convolution by Winograd's algorithm; nullopt for one by its
// definition.
using ChooseWinogradTile = std::function<std::optional<int64_t>(const ConvolutionShape&)>;
// The fastest, by what bench_convolutions has measured.
std::optional<int64_t> measured_winograd_tile(const ConvolutionShape& shape);

constexpr int64_t kFewestPlaces = 3;  // of a tile of windows
// Tiles are written out for both ends of a row and what is between, in vectors and, where channels
// don't fill the last, in vectors of half the lanes, of a quarter, and so on. How many tiles that
// are.
int64_t tiles_of_windows(DataType dtype, int64_t channels, const TargetFacts& target);
// The most places of a tile for sums of such a type over windows of `steps` neighbours, each of
// `channels` with weights of its own (schedule_windows.cc); 0 if these sizes don't suit tiles.
// The schedule needs more than sizes that suit: a row must have several places, and windows that
// aren't as wide as x. Without tiles, the sums are plain reductions.
int64_t places_of_windows(DataType dtype, int64_t channels, int64_t steps,
                          const TargetFacts& target);

}  // namespace tenon::loop
