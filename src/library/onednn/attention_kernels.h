// The inner loops of attention.cc, for the vectors of one kind of processor.
#pragma once

#include <cstdint>

namespace tenon::onednn {

// A multiple of the columns that any kernel set multiplies at once.
inline constexpr int64_t kWholePanels = 64;

struct AttentionKernels {
  // Of each row: x = scale * scores + mask, then scores = exp(x - max x), up to the next multiple
  // of ProductKernels::lanes 0, and sums[row] = the sum of these. Masks lie `mask_row` apart; null
  // for none.
  void (*exponentials)(int64_t rows, int64_t keys, float scale, const float* mask, int64_t mask_row,
                       float* scores, int64_t scores_row, float* sums);

  // For few rows, which aren't worth packing: products[i] = left x row i of a matrix whose rows of
  // `depth` elements lie `row` apart,
  void (*dot_rows)(int64_t rows, int64_t depth, const float* left, const float* matrix, int64_t row,
                   float* products);
  // and sum[width] = the sum of such rows, each multiplied with its factor.
  void (*sum_rows)(int64_t rows, int64_t width, const float* factors, const float* matrix,
                   int64_t row, float* sum);
};

}  // namespace tenon::onednn
