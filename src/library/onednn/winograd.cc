#include "library/onednn/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "device/parallel.h"
#include "device/preparation.h"
#include "library/onednn/functions.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/packed_weights.h"
#include "library/onednn/team.h"
#include "library/onednn/workspace.h"
#include "support/poll.h"
#include "support/rounding.h"
#include "support/winograd_cost.h"

namespace tenon::onednn {
namespace {

// A block reads its weights from L2 once per 6 tiles, and from memory once.
// With fewer tiles for each thread, threads share each block instead of having blocks of their own:
// otherwise each reads all weights for a few tiles.
constexpr int64_t kTilesOfAThread = 32;
constexpr int kLoopsOfABlock = 3;  // each ends in a barrier

// As bench_convolutions measures them.
constexpr WinogradCosts kCosts = {.per_weight = 11,
                                  .per_direct_weight = 14,
                                  .per_direct_product = 0.88,  // oneDNN's
                                  .per_tile_of_2 = 250,
                                  .per_tile_of_4 = 550};

WinogradImages images_of(const Convolution& c, int64_t tile) {
  WinogradImages images{};
  images.x = floats_of(c.x);
  images.height = c.x.dim(1);
  images.width = c.x.dim(2);
  images.channels = c.x.dim(3);
  images.pad_top = c.pads[0];
  images.pad_left = c.pads[1];
  images.out = floats_of(c.out);
  images.out_height = c.out.dim(1);
  images.out_width = c.out.dim(2);
  images.filters = c.out.dim(3);
  images.bias = floats_of(c.bias);
  images.residual = floats_of(c.residual);
  images.clamp = *clamp_of(c.activation, c.alpha, c.beta);
  images.tile_rows = ceil_div(images.out_height, tile);
  images.tile_columns = ceil_div(images.out_width, tile);
  return images;
}

std::shared_ptr<const float> weights_of(const Convolution& c, const WinogradKernels& kernels) {
  const int64_t channels = c.x.dim(3), filters = c.out.dim(3);
  const auto count = static_cast<size_t>(kernels.points * channels * filters);
  return transformed_weights(c.weights, &kernels, count, [&](float* to) {
    parallel_for(channels, 1, [&](int64_t first, int64_t end) {
      for (int64_t channel = first; channel < end; ++channel) {
        poll();
        kernels.transform_weights(floats_of(c.weights), channels, filters, channel, channel + 1,
                                  to);
      }
    });
  });
}

// One call. Threads compute blocks of tiles of their own or, of few tiles, parts of each block.
class Winograd {
 public:
  Winograd(const Convolution& c, const WinogradKernels& kernels)
      : kernels_(kernels),
        images_(images_of(c, kernels.tile)),
        tiles_(c.out.dim(0) * images_.tile_rows * images_.tile_columns),
        weights_(weights_of(c, kernels)) {
    const double work = static_cast<double>(kernels.points * tiles_) *
                        static_cast<double>(images_.channels * images_.filters);
    threads_ = threads_worth(work / kLoopsOfABlock, 0);
    const int64_t tile_bytes = kernels.points * 4 * (inputs_row() + products_row());
    const int64_t fitting = std::max<int64_t>(1, kMostWinogradScratch / tile_bytes);
    const int64_t most = std::min(kWinogradBlock / kernels.points, fitting);
    blocks_ = ceil_div(tiles_, most);
    shares_blocks_ = threads_ > 1 && tiles_ < kTilesOfAThread * threads_;
    if (!shares_blocks_) blocks_ = std::min(tiles_, round_up(blocks_, threads_));
    most_tiles_ = ceil_div(tiles_, blocks_);
  }

  // What later calls keep: the weights, and this thread's memory.
  void prepare() const { prepare_scratch(scratch_bytes()); }

  // Whether all sums were finite.
  bool run() {
    if (shares_blocks_) {
      for (int64_t b = 0; b < blocks_ && finite_; ++b) run_block(b);
    } else {
      divide(blocks_, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end && finite_; ++b) run_block(b);
      });
    }
    return finite_;
  }

 private:
  int64_t inputs_row() const { return images_.channels + kWinogradPadding; }
  int64_t products_row() const { return images_.filters + kWinogradPadding; }

  // Calls f(begin, end) for parts of a range on this thread's team; alone inside another loop.
  template <class F>
  void divide(int64_t count, F&& f) {
    const ThreadsScope scope(threads_);
    parallel_for(count, 1, f);
  }

  int64_t inputs_plane() const { return inputs_row() * most_tiles_ + kWinogradPadding; }
  int64_t products_plane() const { return products_row() * most_tiles_ + kWinogradPadding; }
  size_t scratch_bytes() const {
    const int64_t planes = kernels_.points * (inputs_plane() + products_plane());
    return static_cast<size_t>(planes + images_.channels) * sizeof(float);
  }

  void run_block(int64_t block) {
    const int64_t first = tiles_ * block / blocks_;
    const int64_t count = tiles_ * (block + 1) / blocks_ - first;
    const Counted counted(scratch_bytes());
    auto* const memory = static_cast<float*>(scratch(scratch_bytes()));
    const WinogradPlanes inputs{memory, inputs_row(), inputs_plane()};
    const WinogradPlanes products{memory + kernels_.points * inputs_plane(), products_row(),
                                  products_plane()};
    WinogradImages images = images_;
    float* const zeros = products.data + kernels_.points * products_plane();
    std::fill_n(zeros, images.channels, 0.f);
    images.zeros = zeros;

    divide(count, [&](int64_t begin, int64_t end) {
      kernels_.transform_inputs(images, first + begin, end - begin, inputs.from_row(begin));
    });
    multiply(count, inputs, products);
    divide(count, [&](int64_t begin, int64_t end) {
      if (!kernels_.transform_outputs(images, first + begin, end - begin, products.from_row(begin)))
        finite_ = false;
    });
  }

  void multiply(int64_t tiles, const WinogradPlanes& inputs, const WinogradPlanes& products) {
    const int64_t channels = images_.channels, filters = images_.filters;
    const ProductKernels& product = *kernels_.product;
    const int64_t panels = ceil_div(filters, product.panel);
    divide(kernels_.points * panels, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        poll();
        const int64_t point = i / panels, start = i % panels * product.panel;
        const int64_t width = std::min(product.panel, filters - start);
        const float* const weights = weights_.get() + (point * filters + start) * channels;
        const float* const next = i + 1 < end ? weights + width * channels : weights;
        product.multiply(tiles, channels, width, inputs.data + point * inputs.plane, inputs.row,
                         weights, next, ProductEnd(),
                         products.data + point * products.plane + start, products.row);
      }
    });
  }

  const WinogradKernels& kernels_;
  const WinogradImages images_;
  const int64_t tiles_;
  const std::shared_ptr<const float> weights_;
  int32_t threads_;
  int64_t blocks_, most_tiles_;
  bool shares_blocks_;
  std::atomic<bool> finite_{true};
};

}  // namespace

bool fits_winograd(const Convolution& c) {
  if (c.x.rank() != 4 || c.groups != 1 || !c.weights.constant()) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (c.weights.dim(static_cast<int32_t>(i)) != 3 || c.strides[i] != 1 || c.dilations[i] != 1)
      return false;
  }
  return c.x.dim(3) > 0 && c.x.dim(3) % kWinogradLanes == 0 && c.out.dim(3) % kWinogradLanes == 0 &&
         clamp_of(c.activation, c.alpha, c.beta);
}

const WinogradKernels* choose_winograd(const Convolution& c) {
  const auto kernels = kernel_set().winograd;
  if (!c.winograd || kernels.empty() || !fits_winograd(c)) return nullptr;
  const auto tile = fastest_winograd_tile(
      {c.out.dim(0), c.out.dim(1), c.out.dim(2), c.x.dim(3), c.out.dim(3)}, kCosts);
  if (!tile) return nullptr;
  return &*std::ranges::find(kernels, *tile, &WinogradKernels::tile);
}

bool run_winograd(const Convolution& convolution, const WinogradKernels& kernels) {
  Winograd winograd(convolution, kernels);  // transforms the weights
  if (!is_preparing()) return winograd.run();
  winograd.prepare();
  return true;
}

}  // namespace tenon::onednn
