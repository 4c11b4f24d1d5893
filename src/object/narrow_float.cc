#include "object/narrow_float.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon {
namespace {

// Adding a power of 2 whose last bit counts as much as the last one that the type has rounds to
// that bit, ties to even; subtracting it is exact.
double round_narrow(double x, int fraction_bits, int least_exponent, double greatest) {
  constexpr int kBits = 52, kBias = 1023;  // of a double
  const double magnitude = std::fabs(x);
  if (!(magnitude < 2 * greatest)) return magnitude == magnitude ? std::copysign(INFINITY, x) : x;
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> kBits) - kBias;
  const int above = std::max(exponent, least_exponent) + kBits - fraction_bits + kBias;
  const auto power = std::bit_cast<double>(static_cast<uint64_t>(above) << kBits);
  const double rounded = magnitude + power - power;
  return std::copysign(rounded > greatest ? INFINITY : rounded, x);
}

}  // namespace

double round_to(DataType dtype, double value) {
  if (dtype == f32) return static_cast<float>(value);
  if (dtype == f16) return round_narrow(value, 10, -14, 65504);
  if (dtype == bf16) return round_narrow(value, 7, -126, 0x1.fep127);
  return value;
}

double narrow_value(DataType dtype, uint16_t bits) {
  return dtype == f16 ? half_value(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
}

// A double's bits without the fraction's that the type lacks are an f16's, once the exponent counts
// from f16's least; multiplying by a power of 2 does that, for subnormal numbers, too.
uint16_t narrow_bits(DataType dtype, double value) {
  const double rounded = round_to(dtype, value);
  if (dtype == bf16) {
    const auto wide = std::bit_cast<uint32_t>(static_cast<float>(rounded));
    return static_cast<uint16_t>(wide >> 16 | (std::isnan(value) ? 0x40 : 0));
  }
  const auto sign = static_cast<uint16_t>(std::bit_cast<uint64_t>(value) >> 48 & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(rounded)) return sign | 0x7c00;
  const auto bits = std::bit_cast<uint64_t>(std::fabs(rounded) * 0x1p-1008);
  return static_cast<uint16_t>(sign | bits >> 42);
}

}  // namespace tenon
