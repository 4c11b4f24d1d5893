// For this folder's tests: concise computes, random tensors, comparison with a tolerance.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "loop/evaluator.h"
#include "loop/scalar.h"

namespace tenon::loop {

using Indices = std::vector<ExprRef>;
inline ExprRef operator+(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kAdd, a, b);
}
inline ExprRef operator-(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kSub, a, b);
}
inline ExprRef operator*(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kMul, a, b);
}
inline ExprRef operator/(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kDiv, a, b);
}
inline ExprRef at(const Ref<const Buffer>& b, const Indices& i) {
  return load(b, Array<ExprRef>(i));
}

inline ComputeRef compute_of(const std::vector<Ref<const Buffer>>& inputs,
                             const std::vector<Ref<const Stage>>& stages,
                             const std::vector<Ref<const Buffer>>& outputs) {
  return whole_kernel(Array<Ref<const Buffer>>(inputs), Array<Ref<const Stage>>(stages),
                      Array<Ref<const Buffer>>(outputs), /*in_bounds=*/true);
}

inline Tensor random_tensor(DataType t, const std::vector<int64_t>& shape, std::mt19937* rng,
                            int64_t below = 0) {
  Tensor x = Tensor::empty(shape, t);
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t v = below > 0 ? static_cast<int64_t>((*rng)() % static_cast<uint64_t>(below))
                          : static_cast<int64_t>((*rng)() % 2001) - 1000;
    int64_t bits =
        t.is_float() && below == 0 ? float_bits(round_to(t, v / 250.0)) : scalar_cast(t, i64, v);
    scalar_store(t, static_cast<char*>(x.data()) + i * t.bytes(), bits);
  }
  return x;
}

// Equal shapes and dtypes; integers equal, floats within `tolerance` relative to 1 + |expected|.
inline void expect_close(const Tensor& found, const Tensor& expected, double tolerance = 1e-5) {
  ASSERT_EQ(to_text(found), to_text(expected));
  DataType t = found.dtype();
  for (int64_t i = 0; i < found.count(); ++i) {
    int64_t a = scalar_load(t, static_cast<char*>(found.data()) + i * t.bytes());
    int64_t b = scalar_load(t, static_cast<char*>(expected.data()) + i * t.bytes());
    if (!t.is_float()) {
      ASSERT_EQ(a, b) << "element " << i;
      continue;
    }
    double x = as_float(a), y = as_float(b);
    if (std::isnan(y) || std::isinf(y)) {
      ASSERT_TRUE(std::isnan(y) ? std::isnan(x) : x == y)
          << "element " << i << ": " << x << ", not " << y;
    } else {
      ASSERT_LE(std::fabs(x - y), tolerance * (1 + std::fabs(y))) << "element " << i;
    }
  }
}

}  // namespace tenon::loop
