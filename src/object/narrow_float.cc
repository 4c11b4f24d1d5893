#include "object/narrow_float.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/error.h"

namespace tenon {
namespace {

constexpr FloatFormat kFormats[] = {
    {f16, 5, 10, 15, FloatFormat::kInfinities},
    {bf16, 8, 7, 127, FloatFormat::kInfinities},
    {f8e4m3fn, 4, 3, 7, FloatFormat::kOneNan},
    {f8e4m3fnuz, 4, 3, 8, FloatFormat::kNegativeZero},
    {f8e5m2, 5, 2, 15, FloatFormat::kInfinities},
    {f8e5m2fnuz, 5, 2, 16, FloatFormat::kNegativeZero},
    {f8e8m0fnu, 8, 0, 127, FloatFormat::kPowers},
    {f4e2m1fn, 2, 1, 1, FloatFormat::kNone},
};

constexpr int kBits = 52, kBias = 1023;  // of a double

double power_of_2(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kBias) << kBits);
}

// Of bits that are neither an infinity nor a NaN. As those of a double whose exponent has the
// format's bias, they are multiplied by what the biases differ; that makes subnormal numbers right,
// too.
double magnitude_of(const FloatFormat& format, uint16_t bits) {
  if (format.special == FloatFormat::kPowers) return power_of_2(bits - format.bias);
  const uint64_t wide = uint64_t{bits} << (kBits - format.fraction_bits);
  return std::bit_cast<double>(wide) * power_of_2(kBias - format.bias);
}

double with_sign(const FloatFormat& format, double magnitude, double of) {
  const bool unsigned_zero = format.special == FloatFormat::kNegativeZero && magnitude == 0;
  return unsigned_zero ? 0 : std::copysign(magnitude, of);
}

double round_to(const FloatFormat& format, double x) {
  const double greatest = magnitude_of(format, static_cast<uint16_t>(format.end_of_numbers() - 1));
  if (format.special == FloatFormat::kPowers) {
    if (!(x > 0) || x >= 1.5 * greatest) return NAN;
    const int exponent = std::ilogb(x);
    return power_of_2(std::max(-format.bias, exponent + (x >= 1.5 * power_of_2(exponent))));
  }
  const bool ends = format.special == FloatFormat::kNone;
  if (std::isnan(x)) return ends ? 0 : x;
  // Adding a power of 2 whose last bit counts as much as the last one that the type has rounds to
  // that bit, ties to even; subtracting it is exact.
  double magnitude = std::fabs(x);
  if (magnitude < 2 * greatest) {
    const int exponent = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> kBits) - kBias;
    const double power =
        power_of_2(std::max(exponent, 1 - format.bias) + kBits - format.fraction_bits);
    magnitude = magnitude + power - power;
  }
  if (magnitude > greatest) {
    magnitude = ends ? greatest : format.special == FloatFormat::kInfinities ? INFINITY : NAN;
  }
  return with_sign(format, magnitude, x);
}

}  // namespace

const FloatFormat& format_of(DataType dtype) {
  const auto* at = std::ranges::find(kFormats, dtype, &FloatFormat::dtype);
  TENON_ASSERT(at != std::end(kFormats), to_text(dtype), " isn't a narrow float");
  return *at;
}

double round_to(DataType dtype, double value) {
  if (dtype == f32) return static_cast<float>(value);
  return dtype.is_narrow_float() ? round_to(format_of(dtype), value) : value;
}

double narrow_value(DataType dtype, uint16_t bits) {
  const FloatFormat& format = format_of(dtype);
  const bool negative = (bits & format.sign_bit()) != 0;
  bits &= format.magnitude_mask();
  double magnitude;
  if (bits < format.end_of_numbers() &&
      !(format.special == FloatFormat::kNegativeZero && negative && bits == 0)) {
    magnitude = magnitude_of(format, bits);
  } else {
    const bool infinite =
        format.special == FloatFormat::kInfinities && bits == format.end_of_numbers();
    magnitude = infinite ? INFINITY : NAN;
  }
  return negative ? -magnitude : magnitude;
}

uint16_t narrow_bits(DataType dtype, double value) {
  const FloatFormat& format = format_of(dtype);
  const double rounded = round_to(format, value);
  const uint16_t sign = std::signbit(rounded) ? format.sign_bit() : 0;
  if (std::isnan(rounded)) {
    switch (format.special) {
      case FloatFormat::kInfinities: {  // quiet, with the greatest bits of a bf16's payload
        const uint16_t quiet = static_cast<uint16_t>(1u << (format.fraction_bits - 1));
        const auto payload = std::bit_cast<uint32_t>(static_cast<float>(rounded)) >> 16;
        return static_cast<uint16_t>(sign | format.end_of_numbers() | quiet |
                                     (dtype == bf16 ? payload & 0x7f : 0));
      }
      case FloatFormat::kNegativeZero:
        return format.sign_bit();
      default:
        return static_cast<uint16_t>(sign | format.magnitude_mask());
    }
  }
  if (std::isinf(rounded)) return static_cast<uint16_t>(sign | format.end_of_numbers());
  if (format.special == FloatFormat::kPowers)
    return static_cast<uint16_t>(std::ilogb(rounded) + format.bias);
  const auto bits = std::bit_cast<uint64_t>(std::fabs(rounded) * power_of_2(format.bias - kBias));
  return static_cast<uint16_t>(sign | bits >> (kBits - format.fraction_bits));
}

}  // namespace tenon
