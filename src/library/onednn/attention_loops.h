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
    const int64_t padded = (keys + kLanes - 1) / kLanes * kLanes;
    // Without a mask, scores are scaled with their exponentials: the greatest stays the greatest.
    const bool scales_later = !mask && scale > 0;
    for (int64_t r = 0; r < rows; ++r, scores += scores_row) {
      if (!scales_later) scale_row(keys, scale, mask ? mask + r * mask_row : nullptr, scores);
      for (int64_t i = keys; i < padded; ++i) scores[i] = -__builtin_inff();
      const float factor = scales_later ? scale : 1.F;
      const float top = greatest(padded, scores) * factor;
      Floats sum = {};
      for (int64_t i = 0; i < padded; i += kLanes) {
        const Floats e = exponential(rounded(Products::load(scores + i) * factor) - top);
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

  // The product on its own, as the greatest was rounded: fused with a subtraction of that, it could
  // exceed it.
  [[gnu::always_inline]] static inline Floats rounded(const Floats& product) {
#if defined(__GNUC__) && !defined(__clang__)
    return __builtin_assoc_barrier(product);
#else
    return product;  // Clang fuses only within an expression
#endif
  }

  static void scale_row(int64_t keys, float scale, const float* mask, float* scores) {
    int64_t i = 0;
    for (; i + kLanes <= keys; i += kLanes) {
      Floats x = Products::load(scores + i) * scale;
      if (mask) x += Products::load(mask + i);
      Products::store(scores + i, x);
    }
    for (; i < keys; ++i) scores[i] = scores[i] * scale + (mask ? mask[i] : 0.F);
  }

  // Of a multiple of kLanes scores; without those that aren't numbers.
  static float greatest(int64_t count, const float* scores) {
    constexpr int kChains = 4;  // hide the latency of a comparison
    Floats most[kChains] = {all(-__builtin_inff()), all(-__builtin_inff()), all(-__builtin_inff()),
                            all(-__builtin_inff())};
    int64_t i = 0;
    for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c)
        most[c] = greater(Products::load(scores + i + c * kLanes), most[c]);
    }
    for (; i < count; i += kLanes) most[0] = greater(Products::load(scores + i), most[0]);
    const Floats all_most = greater(greater(most[0], most[1]), greater(most[2], most[3]));
    float top = all_most[0];
    for (int lane = 1; lane < kLanes; ++lane) top = all_most[lane] > top ? all_most[lane] : top;
    return top;
  }
  [[gnu::always_inline]] static inline Floats greater(const Floats& a, const Floats& b) {
    return a > b ? a : b;
  }

  // e^x for x <= 0 or NaN, to 0.7 units in the last place; what would be less than the least normal
  // number is 0. Cody and Waite's reduction to |r| <= ln 2 / 2, then the polynomial of the least
  // relative error, 3.1e-9, that begins with 1 + r.
  [[gnu::always_inline]] static inline Floats exponential(const Floats& x) {
    constexpr float kLeast = -87.33654F, kLog2E = 1.44269504F;
    constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
    // What is added to 1.5 * 2^23 becomes an integer in its low bits; here plus 127, the bias of
    // exponents.
    constexpr float kRounder = 12582912.F + 127.F;
    const Floats shifted = x * kLog2E + kRounder;
    const Floats n = shifted - kRounder;
    const Floats r = (x - n * kLn2High) - n * kLn2Low;
    Floats p = r * 0.00138146F + 0.00836871564F;
    p = p * r + 0.0416683889F;
    p = p * r + 0.166665211F;
    p = p * r + 0.49999994F;
    p = p * r + 1.F;
    p = p * r + 1.F;
    const Integers power = reinterpret_bits<Integers>(shifted) << 23;  // 2^n
    const Floats e = p * reinterpret_bits<Floats>(power);
    return x < kLeast ? Floats{} : e;
  }

  template <class To, class From>
  [[gnu::always_inline]] static inline To reinterpret_bits(const From& from) {
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
  }
};

}  // namespace tenon::onednn
