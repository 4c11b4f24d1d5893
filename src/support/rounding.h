// Division and rounding upwards.
#pragma once

#include <concepts>
#include <type_traits>

namespace tenon {

// a / b, rounded up, for a >= 0 and b > 0.
template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

// The least multiple that is at least `n`, for n >= 0 and multiple > 0.
template <std::integral T>
constexpr T round_up(T n, std::type_identity_t<T> multiple) {
  return ceil_div(n, multiple) * multiple;
}

}  // namespace tenon
