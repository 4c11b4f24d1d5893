// Division and rounding, upwards and downwards.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tenon {

// a / b, rounded up, for a >= 0 and b > 0.
template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return a / b + (a % b > 0);
}

// The least multiple that is at least `n`, for n >= 0 and multiple > 0.
template <std::integral T>
constexpr T round_up(T n, std::type_identity_t<T> multiple) {
  return ceil_div(n, multiple) * multiple;
}

// a / b rounded towards minus infinity; b must not be 0, and the quotient must fit.
constexpr int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// The remainder of that division, with the divisor's sign. b must not be 0, nor -1 if a is
// INT64_MIN.
constexpr int64_t floor_remainder(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace tenon
