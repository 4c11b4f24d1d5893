// The inner loops of winograd.cc, for one tile size and the vectors of one kind of processor.
#pragma once

#include <cstdint>

#include "library/onednn/product_kernels.h"

namespace tenon::onednn {

// The images of one convolution. Tiles are numbered by image, row and column.
struct WinogradImages {
  const float* x;  // [images, height, width, channels]
  int64_t height, width, channels;
  int64_t pad_top, pad_left;
  const float* zeros;  // [channels]: a pixel of the padding
  float* out;          // [images, out_height, out_width, filters]
  int64_t out_height, out_width, filters;
  const float* bias;      // [filters] or null
  const float* residual;  // like out, or null
  Clamp clamp;
  int64_t tile_rows, tile_columns;  // of an image
};

// A matrix [tiles, channels or filters] for each point, in scratch memory. Rows are `row` elements
// apart, matrices `plane`.
struct WinogradPlanes {
  float* data;
  int64_t row, plane;

  WinogradPlanes from_row(int64_t first) const { return {data + first * row, row, plane}; }
};

// Channels and filters are multiples of kWinogradLanes.
inline constexpr int64_t kWinogradLanes = 16;

struct WinogradKernels {
  int64_t tile;    // outputs along each axis
  int64_t points;  // (tile + 2)^2 products for each channel and filter of a tile
  // Multiplies the transformed inputs and weights: panels are of filters.
  const ProductKernels* product;

  // Transforms weights [3, 3, channels, filters] of the channels [first, end) into
  // [points][panels][channels][panel], in f64, rounded once. `to` has points * channels * filters
  // elements.
  void (*transform_weights)(const float* weights, int64_t channels, int64_t filters, int64_t first,
                            int64_t end, float* to);
  // Transforms the windows of the tiles [first, first + count) into the first rows of `to`.
  void (*transform_inputs)(const WinogradImages& images, int64_t first, int64_t count,
                           const WinogradPlanes& to);
  // Transforms products of the same tiles into outputs, applies the epilogue and stores them.
  // Returns whether all are finite before the epilogue. A product or sum that isn't finite reaches
  // at least one output of its tile, because nothing finite is added to it afterwards.
  bool (*transform_outputs)(const WinogradImages& images, int64_t first, int64_t count,
                            const WinogradPlanes& from);
};

}  // namespace tenon::onednn
