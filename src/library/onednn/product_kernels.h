// The inner loop of constant_product.cc, for the vectors of one kind of processor.
#pragma once

#include <cstdint>

namespace tenon::onednn {

// What is done with a product before it is stored; the columns are those of the product.
struct ProductEnd {
  const float* added =
      nullptr;  // [rows, width], rows `added_row` apart, or null; may be the result
  int64_t added_row = 0;
  const float* bias = nullptr;  // [width] or null
  bool clamps = false;          // to [low, high], which turns NaN into `low`
  float low = 0, high = 0;
};

struct ProductKernels {
  int64_t lanes;  // of a vector
  int64_t panel;  // columns that are multiplied at once; a multiple of `lanes`

  // products[rows, width] = end(left[rows, depth] x packed[depth, width]) for a `width` that is a
  // multiple of `lanes` up to `panel`. The order of a sum depends on nothing but `depth`. Meanwhile
  // it fetches what is multiplied next, as many elements as `packed` has.
  void (*multiply)(int64_t rows, int64_t depth, int64_t width, const float* left, int64_t left_row,
                   const float* packed, const float* next, const ProductEnd& end, float* products,
                   int64_t products_row);
};

}  // namespace tenon::onednn
