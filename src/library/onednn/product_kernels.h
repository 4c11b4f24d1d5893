// The matrix product that winograd.cc, attention.cc and constant_product.cc share, for the vectors
// of one kind of processor.
#pragma once

#include <cstdint>

namespace tenon::onednn {

// A matrix in memory; elements of a row need not be neighbours.
struct Strided {
  const float* data;
  int64_t row, column;
};

struct Clamp {
  bool clamps = false;  // to [low, high], which turns NaN into `low`
  float low = 0, high = 0;
};

// What is done with a product before it is stored; the columns are those of the product.
struct ProductEnd {
  // [rows, width], rows `added_row` apart, or null; may be the result.
  const float* added = nullptr;
  int64_t added_row = 0;
  const float* bias = nullptr;  // [width] or null
  Clamp clamp;
};

struct ProductKernels {
  int64_t lanes;  // of a vector
  int64_t panel;  // columns that are multiplied at once; a multiple of `lanes`

  // Copies a matrix [depth, columns] into panels, one after the other. The last has the columns
  // that are left, filled up with zeros to a multiple of `lanes`.
  void (*pack)(const Strided& from, int64_t depth, int64_t columns, float* to);
  // products[rows, width] = end(left[rows, depth] x packed[depth, width]) for a `width` that is a
  // multiple of `lanes` up to `panel`. The order of a sum depends on nothing but `depth`. Meanwhile
  // it fetches what is multiplied next, as many elements as `packed` has.
  void (*multiply)(int64_t rows, int64_t depth, int64_t width, const float* left, int64_t left_row,
                   const float* packed, const float* next, const ProductEnd& end, float* products,
                   int64_t products_row);
};

}  // namespace tenon::onednn
