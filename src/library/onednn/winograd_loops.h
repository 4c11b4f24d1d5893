// The kernels of winograd_kernels.h as templates, which kernels_avx512.cc and its like instantiate
// with their processor's vectors. Everything here is a template over these, so that no other source
// can share the code that one of them compiles.
#pragma once

#include "library/onednn/vector_product.h"
#include "library/onednn/winograd_kernels.h"
#include "support/winograd_cost.h"
#include "support/winograd_transforms.h"

namespace tenon::onednn {

template <int kLanes, int kRows, int kVectors>
struct WinogradLoops {
  using Products = VectorProduct<kLanes, kRows, kVectors>;
  using Floats = typename Products::Floats;
  // As many doubles as a register has.
  typedef double Doubles __attribute__((vector_size(kLanes * 4)));
  typedef float HalfFloats __attribute__((vector_size(kLanes * 2)));
  typedef float AnyHalfFloats __attribute__((vector_size(kLanes * 2), aligned(4), may_alias));

  static constexpr int64_t kPanel = Products::kPanel;

  template <class To, class From>
  [[gnu::always_inline]] static inline To converted(const From& value) {
    return __builtin_convertvector(value, To);
  }

  // Three by three taps into kIn by kIn, a column at a time and then a row at a time. The points of
  // a tap are planes apart, often a power of two, so that few of their lines fit the cache at once:
  // each is written whole.
  template <int kTile>
  static void transform_weights(const float* weights, int64_t channels, int64_t filters,
                                int64_t first, int64_t end, float* to) {
    constexpr int kIn = kTile + kWinogradTaps - 1;
    for (int64_t c = first; c < end; ++c) {
      for (int64_t k = 0; k < filters; k += kLanes) {
        float points[kIn * kIn][kLanes];
        for (int half = 0; half < kLanes; half += kLanes / 2)
          transform_taps<kTile>(weights + c * filters + k + half, channels * filters,
                                &points[0][half]);
        const int64_t start = k / kPanel * kPanel;
        const int64_t width = Products::lesser(kPanel, filters - start);
        float* at = to + start * channels + c * width + (k - start);
        for (int p = 0; p < kIn * kIn; ++p, at += channels * filters)
          Products::store(at, Products::load(points[p]));
      }
    }
  }

  // Of kLanes / 2 filters, in doubles. Taps lie `plane` apart, points kLanes.
  template <int kTile>
  [[gnu::always_inline]] static inline void transform_taps(const float* weights, int64_t plane,
                                                           float* points) {
    constexpr int kIn = kTile + kWinogradTaps - 1, kTaps = kWinogradTaps;
    using Transforms = WinogradTransforms<kTile>;
    Doubles taps[kTaps * kTaps], half[kIn * kTaps], all[kIn * kIn];
    for (int tap = 0; tap < kTaps * kTaps; ++tap) {
      const HalfFloats half_taps = *reinterpret_cast<const AnyHalfFloats*>(weights + tap * plane);
      taps[tap] = converted<Doubles>(half_taps);
    }
    for (int j = 0; j < kTaps; ++j)
      Transforms::template filter<double>(taps + j, kTaps, half + j, kTaps);
    for (int i = 0; i < kIn; ++i)
      Transforms::template filter<double>(half + i * kTaps, 1, all + i * kIn, 1);
    for (int p = 0; p < kIn * kIn; ++p, points += kLanes)
      *reinterpret_cast<AnyHalfFloats*>(points) = converted<HalfFloats>(all[p]);
  }

  template <int kTile>
  static void transform_inputs(const WinogradImages& images, int64_t first, int64_t count,
                               const WinogradPlanes& to) {
    constexpr int kIn = kTile + kWinogradTaps - 1;
    using Transforms = WinogradTransforms<kTile>;
    for (int64_t t = 0; t < count; ++t) {
      const float* pixels[kIn * kIn];
      find_pixels<kTile>(images, first + t, pixels);
      float* const row = to.data + t * to.row;
      for (int64_t c = 0; c < images.channels; c += kLanes) {
        Floats half[kIn * kIn];
        for (int j = 0; j < kIn; ++j) {
          Floats column[kIn];
#pragma GCC unroll 8
          for (int i = 0; i < kIn; ++i) column[i] = Products::load(pixels[i * kIn + j] + c);
          Transforms::template input<float>(column, 1, half + j, kIn);
        }
#pragma GCC unroll 8
        for (int i = 0; i < kIn; ++i) {
          Floats points[kIn];
          Transforms::template input<float>(half + i * kIn, 1, points, 1);
#pragma GCC unroll 8
          for (int j = 0; j < kIn; ++j)
            Products::store(row + (i * kIn + j) * to.plane + c, points[j]);
        }
      }
    }
  }

  template <int kTile>
  static bool transform_outputs(const WinogradImages& images, int64_t first, int64_t count,
                                const WinogradPlanes& from) {
    constexpr int kIn = kTile + kWinogradTaps - 1;
    using Transforms = WinogradTransforms<kTile>;
    Floats zero = {};  // NaN as soon as a sum isn't finite
    for (int64_t t = 0; t < count; ++t) {
      const Place place = place_of<kTile>(images, first + t);
      const int64_t rows = Products::lesser(kTile, images.out_height - place.row);
      const int64_t columns = Products::lesser(kTile, images.out_width - place.column);
      const int64_t pixel =
          (place.image * images.out_height + place.row) * images.out_width + place.column;
      for (int64_t k = 0; k < images.filters; k += kLanes) {
        const float* const row = from.data + t * from.row + k;
        Floats half[kTile * kIn];
#pragma GCC unroll 8
        for (int j = 0; j < kIn; ++j) {
          Floats column[kIn];
#pragma GCC unroll 8
          for (int i = 0; i < kIn; ++i)
            column[i] = Products::load(row + (i * kIn + j) * from.plane);
          Transforms::template output<float>(column, 1, half + j, kIn);
        }
        const Floats bias = images.bias ? Products::load(images.bias + k) : Floats{};
#pragma GCC unroll 8
        for (int i = 0; i < kTile; ++i) {
          if (i >= rows) break;
          Floats sums[kTile];
          Transforms::template output<float>(half + i * kIn, 1, sums, 1);
          const int64_t at = (pixel + i * images.out_width) * images.filters + k;
#pragma GCC unroll 8
          for (int j = 0; j < kTile; ++j) {
            if (j >= columns) break;
            zero += sums[j] * 0.f;
            finish(images, at + j * images.filters, sums[j] + bias);
          }
        }
      }
    }
    float zeros[kLanes];
    Products::store(zeros, zero);
    for (float lane : zeros) {
      if (lane != 0) return false;
    }
    return true;
  }

  template <int kTile>
  static constexpr WinogradKernels kernels() {
    return {kTile,
            (kTile + kWinogradTaps - 1) * (kTile + kWinogradTaps - 1),
            &Products::kKernels,
            transform_weights<kTile>,
            transform_inputs<kTile>,
            transform_outputs<kTile>};
  }

 private:
  struct Place {
    int64_t image, row, column;  // the first output
  };

  template <int kTile>
  static Place place_of(const WinogradImages& images, int64_t tile) {
    const int64_t column = tile % images.tile_columns, row = tile / images.tile_columns;
    return {row / images.tile_rows, row % images.tile_rows * kTile, column * kTile};
  }

  template <int kTile>
  static void find_pixels(const WinogradImages& images, int64_t tile, const float** pixels) {
    constexpr int kIn = kTile + kWinogradTaps - 1;
    const Place place = place_of<kTile>(images, tile);
    for (int i = 0; i < kIn; ++i) {
      const int64_t y = place.row + i - images.pad_top;
      const bool has_row = y >= 0 && y < images.height;
      const int64_t row = has_row ? (place.image * images.height + y) * images.width : 0;
      for (int j = 0; j < kIn; ++j) {
        const int64_t x = place.column + j - images.pad_left;
        const bool inside = has_row && x >= 0 && x < images.width;
        pixels[i * kIn + j] = inside ? images.x + (row + x) * images.channels : images.zeros;
      }
    }
  }

  [[gnu::always_inline]] static inline void finish(const WinogradImages& images, int64_t at,
                                                   Floats value) {
    if (images.residual) value += Products::load(images.residual + at);
    if (images.clamp.clamps) {
      const Floats low = Products::all(images.clamp.low), high = Products::all(images.clamp.high);
      value = value > low ? value : low;
      value = value < high ? value : high;
    }
    Products::store(images.out + at, value);
  }
};

}  // namespace tenon::onednn
