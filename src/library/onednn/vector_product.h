// Vectors of one kind of processor, and the matrix product that Winograd's algorithm, attention and
// products with constants share. It computes a block of the result in registers, like the
// micro-kernels of BLIS (F. Van Zee and R. van de Geijn, "BLIS: A Framework for Rapidly
// Instantiating BLAS Functionality", 2015).
//
// Everything here is a template, because each kernels_*.cc compiles it with its processor's
// instructions: a function that isn't could be shared with other sources.
#pragma once

#include <cstdint>

#include "library/onednn/product_kernels.h"

namespace tenon::onednn {

// Vectors of kLanes floats. A block of kRows x kVectors of them stays in registers.
template <int kLanes, int kRows, int kVectors>
struct VectorProduct {
  typedef float Floats __attribute__((vector_size(kLanes * 4)));

  static constexpr int64_t kPanel = kVectors * kLanes;

  [[gnu::always_inline]] static inline Floats load(const float* from) {
    return *reinterpret_cast<const AnyFloats*>(from);
  }
  [[gnu::always_inline]] static inline void store(float* to, const Floats& value) {
    *reinterpret_cast<AnyFloats*>(to) = value;
  }
  // GCC doesn't drop the addition of 0 instead, which changes -0.
  [[gnu::always_inline]] static inline Floats all(float value) { return value - Floats{}; }

  // std::min could be shared with other sources.
  [[gnu::always_inline]] static inline int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
  }

  static void pack(const Strided& from, int64_t depth, int64_t columns, float* to) {
    for (int64_t start = 0; start < columns; start += kPanel) {
      const int64_t width = panel_width(columns - start);
      const int64_t filled = columns - start < width ? columns - start : width;
      const float* const first = from.data + start * from.column;
      if (filled < width) {
        for (int64_t i = 0; i < depth * width; ++i) to[i] = 0;
      }
      if (from.column == 1) {
        for (int64_t d = 0; d < depth; ++d) {
          for (int64_t j = 0; j < filled; ++j) to[d * width + j] = first[d * from.row + j];
        }
      } else {
        // A line of the panel at a time, from as many places.
        for (int64_t line = 0; line < filled; line += kLineFloats) {
          const int64_t end = line + kLineFloats < filled ? line + kLineFloats : filled;
          for (int64_t d = 0; d < depth; ++d) {
            const float* const row = first + d * from.row;
            for (int64_t j = line; j < end; ++j) to[d * width + j] = row[j * from.column];
          }
        }
      }
      to += depth * width;
    }
  }

  static void multiply(int64_t rows, int64_t channels, int64_t width, const float* inputs,
                       int64_t inputs_row, const float* weights, const float* next,
                       const ProductEnd& product_end, float* products, int64_t products_row) {
    // Blocks of about the same number of rows. The first ones read the weights from the caches
    // beyond the second, or from memory, unless the blocks of the panel before fetch them, each a
    // part of one line for each channel.
    const int64_t blocks = (rows + kRows - 1) / kRows, parts = width * 4 / kLine;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = rows * b / blocks, end = rows * (b + 1) / blocks;
      const Block block{
          channels,
          inputs + first * inputs_row,
          inputs_row,
          weights,
          next + lesser(b, parts - 1) * channels * kLineFloats,
          products + first * products_row,
          products_row,
          product_end.added ? product_end.added + first * product_end.added_row : nullptr,
          product_end};
      multiply_block<1, 1>(end - first, width / kLanes, block);
    }
  }

  static constexpr ProductKernels kKernels = {kLanes, kPanel, pack, multiply};

 private:
  typedef float AnyFloats __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

  static constexpr int64_t kLine = 64;  // bytes of a cache line
  static constexpr int64_t kLineFloats = kLine / 4;

  // Of a panel that has that many columns left.
  static int64_t panel_width(int64_t left) {
    return left < kPanel ? (left + kLanes - 1) / kLanes * kLanes : kPanel;
  }

  // A block of rows with a panel of the weights.
  struct Block {
    int64_t channels;
    const float* inputs;
    int64_t inputs_row;
    const float *weights, *fetched;
    float* products;
    int64_t products_row;
    const float* added;
    const ProductEnd& end;
  };

  // Multiplies a block of `rows` and `vectors`, which are at least kM and kN.
  template <int kM, int kN>
  [[gnu::always_inline]] static inline void multiply_block(int64_t rows, int64_t vectors,
                                                           const Block& block) {
    if constexpr (kM < kRows) {
      if (rows > kM) return multiply_block<kM + 1, kN>(rows, vectors, block);
    }
    if constexpr (kN < kVectors) {
      if (vectors > kN) return multiply_block<kM, kN + 1>(rows, vectors, block);
    }
    multiply_registers<kM, kN>(block);
  }

  template <int kM, int kN>
  [[gnu::noinline]] static void multiply_registers(const Block& block) {
    const float *const inputs = block.inputs, *weights = block.weights;
    const char* fetched = reinterpret_cast<const char*>(block.fetched);
    Floats sums[kM][kN] = {};
    for (int64_t c = 0; c < block.channels; ++c, weights += kN * kLanes, fetched += kLine) {
      __builtin_prefetch(fetched, 0, 2);
      Floats factors[kN];
#pragma GCC unroll 16
      for (int j = 0; j < kN; ++j) factors[j] = load(weights + j * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kM; ++i) {
        const Floats input = all(inputs[i * block.inputs_row + c]);
#pragma GCC unroll 16
        for (int j = 0; j < kN; ++j) sums[i][j] += input * factors[j];
      }
    }
    finish<kM, kN>(block, sums);
#pragma GCC unroll 16
    for (int i = 0; i < kM; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kN; ++j)
        store(block.products + i * block.products_row + j * kLanes, sums[i][j]);
    }
  }

  template <int kM, int kN>
  [[gnu::always_inline]] static inline void finish(const Block& block, Floats (&sums)[kM][kN]) {
    const ProductEnd& end = block.end;
    if (block.added) {
#pragma GCC unroll 16
      for (int i = 0; i < kM; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < kN; ++j)
          sums[i][j] += load(block.added + i * end.added_row + j * kLanes);
      }
    }
    if (end.bias) {
#pragma GCC unroll 16
      for (int j = 0; j < kN; ++j) {
        const Floats bias = load(end.bias + j * kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < kM; ++i) sums[i][j] += bias;
      }
    }
    if (end.clamp.clamps) {
      const Floats low = all(end.clamp.low), high = all(end.clamp.high);
#pragma GCC unroll 16
      for (int i = 0; i < kM; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < kN; ++j) {
          const Floats raised = sums[i][j] > low ? sums[i][j] : low;
          sums[i][j] = raised < high ? raised : high;
        }
      }
    }
  }
};

}  // namespace tenon::onednn
