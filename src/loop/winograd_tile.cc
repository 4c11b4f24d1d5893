#include "loop/winograd_tile.h"

#include "support/rounding.h"

namespace tenon::loop {
namespace {

// What a convolution costs, in multiplications of a product at full speed: bench_convolutions
// measures the terms.
namespace cost {
constexpr double kPerWeight = 11;        // to read a transformed one
constexpr double kPerTransform = 10;     // of a weight to a point, and to write that
constexpr double kPerDirectWeight = 14;  // to read one that isn't transformed
constexpr double kPerDirectProduct = 1.1;
// To transform a channel's window or a filter's sums of a tile.
constexpr double per_tile(int64_t tile) {
  return tile == 4 ? 800 : 350;
}
constexpr double kWorthIt = 0.95, kWorthMemory = 0.9;  // as in library/onednn/winograd.cc
}  // namespace cost

double weights_of(const ConvolutionShape& s) {
  return static_cast<double>(s.channels) * static_cast<double>(s.filters);
}

double direct_cost(const ConvolutionShape& s) {
  const auto pixels = static_cast<double>(s.images * s.height * s.width);
  return 9 * weights_of(s) * (pixels * cost::kPerDirectProduct + cost::kPerDirectWeight);
}

double winograd_cost(const ConvolutionShape& s, int64_t tile) {
  const auto tiles =
      static_cast<double>(s.images * ceil_div(s.height, tile) * ceil_div(s.width, tile));
  const auto points = static_cast<double>((tile + 2) * (tile + 2));
  return points * weights_of(s) * (tiles + cost::kPerWeight + cost::kPerTransform) +
         tiles * cost::per_tile(tile) * static_cast<double>(s.channels + s.filters);
}

}  // namespace

std::optional<int64_t> fastest_winograd_tile(const ConvolutionShape& shape) {
  const double four = winograd_cost(shape, 4), two = winograd_cost(shape, 2);
  const bool takes_four = four < cost::kWorthMemory * two;
  if ((takes_four ? four : two) > cost::kWorthIt * direct_cost(shape)) return std::nullopt;
  return takes_four ? 4 : 2;
}

}  // namespace tenon::loop
