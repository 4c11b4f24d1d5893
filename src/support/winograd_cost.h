// Which convolutions of 3 by 3 with stride 1 Winograd's algorithm computes faster, and the sizes of
// its parts, which the library's implementation and the compiler's (loop/winograd_plan.h) share.
#pragma once

#include <cstdint>
#include <optional>

#include "support/rounding.h"

namespace tenon {

inline constexpr int kWinogradTaps = 3;  // of a filter, per side

// A block's windows and products should stay in the caches.
inline constexpr int64_t kWinogradBlock = 2304;  // tiles * points
inline constexpr int64_t kMostWinogradScratch = int64_t{10} << 20;
// By so many floats, rows and planes are longer than their content: those of a power of two would
// fall into the same sets of the caches.
inline constexpr int64_t kWinogradPadding = 16;

// Of the result: `images` of height x width x filters, each a sum over 3 x 3 x channels.
struct ConvolutionShape {
  int64_t images, height, width, channels, filters;
};

// What an implementation's steps cost, in multiplications of a product at full speed. Weights come
// from memory, because a model's other layers have been in the caches meanwhile.
struct WinogradCosts {
  double per_weight;  // and point: to transform and read it
  double per_direct_weight;
  double per_direct_product;
  double per_tile_of_2, per_tile_of_4;  // to transform a channel's window or a filter's sums
};

// The size of the tiles, in results per side: 2 or 4; nullopt if the definition is faster. Depends
// on nothing else, so that results don't depend on the number of threads.
inline std::optional<int64_t> fastest_winograd_tile(const ConvolutionShape& s,
                                                    const WinogradCosts& costs) {
  // Of the definition's cost; and of that of smaller tiles, whose weights are 4/9 as large.
  constexpr double kWorthIt = 0.95, kWorthMemory = 0.9;
  const auto pixels = static_cast<double>(s.images * s.height * s.width),
             channels = static_cast<double>(s.channels), filters = static_cast<double>(s.filters);
  const auto by_winograd = [&](int64_t tile, double per_tile) {
    const auto tiles =
        static_cast<double>(s.images * ceil_div(s.height, tile) * ceil_div(s.width, tile));
    const auto points =
        static_cast<double>((tile + kWinogradTaps - 1) * (tile + kWinogradTaps - 1));
    return points * channels * filters * (tiles + costs.per_weight) +
           tiles * per_tile * (channels + filters);
  };
  const double direct = kWinogradTaps * kWinogradTaps * channels * filters *
                        (pixels * costs.per_direct_product + costs.per_direct_weight),
               two = by_winograd(2, costs.per_tile_of_2),
               four = by_winograd(4, costs.per_tile_of_4);
  const bool takes_four = four < kWorthMemory * two;
  if ((takes_four ? four : two) > kWorthIt * direct) return std::nullopt;
  return takes_four ? 4 : 2;
}

}  // namespace tenon
