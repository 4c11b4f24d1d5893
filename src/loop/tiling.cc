#include "loop/tiling.h"

#include <algorithm>

#include "support/error.h"

namespace tenon::loop {
namespace {

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

struct Row {
  ContractionKind kind;
  DataType dtype;
  TargetFacts target;
  int64_t rows, columns, depth;  // the largest that fit; columns in vectors
  Tiling tiling;
};

constexpr Row kTable[] = {
#define TENON_TILING(kind, dtype, vector_bytes, vector_registers, rows, columns, depth, tile_rows, \
                     tile_vectors, row_tiles, column_tiles, direct_depth, direct_columns)          \
  {ContractionKind::kind,                                                                          \
   dtype,                                                                                          \
   {vector_bytes, vector_registers},                                                               \
   rows,                                                                                           \
   columns,                                                                                        \
   depth,                                                                                          \
   {tile_rows, tile_vectors, row_tiles, column_tiles, direct_depth, direct_columns}},
#include "loop/tilings.def"
#undef TENON_TILING
};

bool fits(std::optional<int64_t> size, int64_t most) {
  return most == kAny || (size && *size <= most);
}

}  // namespace

Tiling tabled_tiling(const ContractionShape& shape, const TargetFacts& target) {
  const int64_t lanes = std::max<int64_t>(target.vector_bytes / shape.dtype.bytes(), 1);
  std::optional<int64_t> vectors;
  if (shape.columns) vectors = (*shape.columns + lanes - 1) / lanes;
  // A dtype without its own rows uses those of f32.
  const bool listed =
      std::ranges::any_of(kTable, [&](const Row& row) { return row.dtype == shape.dtype; });
  for (const Row& row : kTable) {
    if (row.kind == shape.kind && row.dtype == (listed ? shape.dtype : f32) &&
        row.target == target && fits(shape.rows, row.rows) && fits(vectors, row.columns) &&
        fits(shape.depth, row.depth)) {
      return row.tiling;
    }
  }
  TENON_ASSERT(false, "no tiling for vectors of ", target.vector_bytes, " bytes in ",
               target.vector_registers, " registers");
  return {};
}

}  // namespace tenon::loop
