// Which convolutions of 3 by 3 with stride 1 are faster by Winograd's algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace tenon::loop {

// Of the result: `images` of height x width x filters, each a sum over 3 x 3 x channels.
struct ConvolutionShape {
  int64_t images, height, width, channels, filters;
};

// The size of the tiles, in results per side: 2 or 4; nullopt for a direct convolution. Depends on
// the shape alone, so that results do.
using ChooseWinogradTile = std::function<std::optional<int64_t>(const ConvolutionShape&)>;

// The fastest, by a formula over the shape.
std::optional<int64_t> fastest_winograd_tile(const ConvolutionShape& shape);

}  // namespace tenon::loop
