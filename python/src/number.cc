#include "python/src/number.h"

#include <algorithm>
#include <cmath>

namespace tenon::python {

bool is_in_range(int64_t value, DLDataType dtype) {
  const bool is_signed = dtype.code == kDLInt;
  if (dtype.bits >= 64) return true;
  const int64_t end = int64_t{1} << (is_signed ? dtype.bits - 1 : dtype.bits);
  return value < end && value >= (is_signed ? -end : 0);
}

double round_to(DLDataType dtype, double value) {
  if (dtype.bits == 64 || !std::isfinite(value) || value == 0) return value;
  if (dtype.bits == 32) return static_cast<float>(value);
  const bool is_half = dtype.code == kDLFloat;
  int exponent = 0;  // of a fraction in [0.5, 1)
  std::frexp(value, &exponent);
  const int least = is_half ? -14 : -126, fraction_bits = is_half ? 10 : 7;
  const double unit = std::ldexp(1.0, std::max(exponent - 1, least) - fraction_bits);
  const double rounded = std::nearbyint(value / unit) * unit;
  const double greatest = is_half ? 65504 : 0x1.fep127;
  return std::abs(rounded) > greatest ? std::copysign(INFINITY, value) : rounded;
}

}  // namespace tenon::python
