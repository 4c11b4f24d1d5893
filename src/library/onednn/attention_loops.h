// The kernels of attention_kernels.h as templates, which kernels_avx512.cc and its like
// instantiate with their processor's vectors. Everything here is a template over these, so that no
// other source can share the code that one of them compiles.
#pragma once

#include "library/onednn/attention_kernels.h"
#include "library/onednn/vector_product.h"

namespace tenon::onednn {

template <int kLanes, int kRows, int kVectors>
struct AttentionLoops {
  using Products = VectorProduct<kLanes, kRows, kVectors>;
  using Floats = typename Products::Floats;
  typedef int32_t Integers __attribute__((vector_size(kLanes * 4)));

  static_assert(kWholePanels % Products::kPanel == 0);

  static void exponentials(int64_t rows, int64_t keys, float scale, const float* mask,
                           int64_t mask_row, float* scores, int64_t scores_row, float* sums) {
    const int64_t whole = keys / kLanes * kLanes;
    const int64_t padded = (keys + kLanes - 1) / kLanes * kLanes;
    for (int64_t r = 0; r < rows; ++r, scores += scores_row) {
      const float* const added = mask ? mask + r * mask_row : nullptr;
      Floats most = all(-__builtin_inff());
      for (int64_t i = 0; i < whole; i += kLanes) {
        Floats x = Products::load(scores + i) * scale;
        if (added) x += Products::load(added + i);
        Products::store(scores + i, x);
        most = x > most ? x : most;
      }
      for (int64_t i = whole; i < padded; ++i) {
        scores[i] = i < keys ? scores[i] * scale + (added ? added[i] : 0.f) : -__builtin_inff();
      }
      if (whole < padded) {
        const Floats x = Products::load(scores + whole);
        most = x > most ? x : most;
      }
      float top = most[0];
      for (int i = 1; i < kLanes; ++i) top = most[i] > top ? most[i] : top;
      Floats sum = {};
      for (int64_t i = 0; i < padded; i += kLanes) {
        const Floats e = exponential(Products::load(scores + i) - top);
        Products::store(scores + i, e);
        sum += e;
      }
      float total = 0;
      for (int i = 0; i < kLanes; ++i) total += sum[i];
      sums[r] = total;
    }
  }

  static void dot_rows(int64_t rows, int64_t depth, const float* left, const float* matrix,
                       int64_t row, float* products) {
    const int64_t whole = depth / kLanes * kLanes;
    for (int64_t i = 0; i < rows; ++i, matrix += row) {
      Floats sum = {};
      for (int64_t d = 0; d < whole; d += kLanes)
        sum += Products::load(left + d) * Products::load(matrix + d);
      float total = 0;
      for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
      for (int64_t d = whole; d < depth; ++d) total += left[d] * matrix[d];
      products[i] = total;
    }
  }

  static void sum_rows(int64_t rows, int64_t width, const float* factors, const float* matrix,
                       int64_t row, float* sum) {
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      Floats total = {};
      for (int64_t i = 0; i < rows; ++i) total += Products::load(matrix + i * row + c) * factors[i];
      Products::store(sum + c, total);
    }
    for (; c < width; ++c) {
      float total = 0;
      for (int64_t i = 0; i < rows; ++i) total += matrix[i * row + c] * factors[i];
      sum[c] = total;
    }
  }

  static constexpr AttentionKernels kernels() { return {exponentials, dot_rows, sum_rows}; }

 private:
  [[gnu::always_inline]] static inline Floats all(float value) { return Products::all(value); }

  // e^x for x <= 0, to two units in the last place; what would be less than the least normal number
  // is 0. Cody and Waite's reduction to |r| <= ln 2 / 2, then Taylor's polynomial.
  [[gnu::always_inline]] static inline Floats exponential(Floats x) {
    constexpr float kLeast = -87.33654F, kLog2E = 1.44269504F;
    constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
    constexpr float kRounder = 12582912.F;  // 1.5 * 2^23: what is added to it becomes an integer
    const Floats inside = x > kLeast ? x : all(kLeast);
    const Floats shifted = inside * kLog2E + kRounder;
    const Floats n = shifted - kRounder;
    const Floats r = (inside - n * kLn2High) - n * kLn2Low;
    Floats p = all(1.F / 5040);
    p = p * r + 1.F / 720;
    p = p * r + 1.F / 120;
    p = p * r + 1.F / 24;
    p = p * r + 1.F / 6;
    p = p * r + 0.5F;
    p = p * r + 1.F;
    p = p * r + 1.F;
    // 2^n: the low bits of `shifted` are n.
    const Integers bits = reinterpret_bits<Integers>(shifted) << 23;
    const Integers power = bits + (127 << 23);
    const Floats e = p * reinterpret_bits<Floats>(power);
    const Floats kept = x < kLeast ? Floats{} : e;
    return x == x ? kept : x;  // NaN
  }

  template <class To, class From>
  [[gnu::always_inline]] static inline To reinterpret_bits(const From& from) {
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
  }
};

}  // namespace tenon::onednn
