// How sums of products are cut into tiles: plain values, which schedules are given and follow.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "object/dtype.h"

namespace tenon::loop {

// What schedules know of the CPU that a kernel is made for.
struct TargetFacts {
  int64_t vector_bytes = 32;  // of one vector register
  int64_t vector_registers = 16;
  bool operator==(const TargetFacts&) const = default;
};

// A register tile accumulates `rows` rows of `vectors` vectors each. A task computes a block of
// row_tiles x column_tiles of them; more than there are rows or columns is cut down.
struct Tiling {
  int64_t rows = 1, vectors = 1;
  int64_t row_tiles = 8, column_tiles = 8;
  // An operand is read where it lies, instead of being packed into a buffer of its own, up to this
  // many steps of the sum (the left one) or columns (the right one): memory that is read in longer
  // steps meets in few lines of the cache.
  int64_t direct_depth = 512, direct_columns = 768;
};

enum class ContractionKind : uint8_t {
  kProduct,      // of matrices: the left operand runs through the sum in steps of one size
  kConvolution,  // the left operand is gathered from windows
};

// What a choice may depend on; sizes are absent where they are not constant.
struct ContractionShape {
  ContractionKind kind = ContractionKind::kProduct;
  DataType dtype;  // that is accumulated in
  std::optional<int64_t> rows, columns, depth;
};

using ChooseTiling = std::function<Tiling(const ContractionShape&, const TargetFacts&)>;

// The choice of the table in tilings.def. It measures nothing: the same arguments give the same
// tiling everywhere.
Tiling tabled_tiling(const ContractionShape& shape, const TargetFacts& target);

}  // namespace tenon::loop
