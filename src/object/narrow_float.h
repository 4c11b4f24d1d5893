// Numbers of the float types narrower than f32, as doubles.
#pragma once

#include <cstdint>

#include "object/dtype.h"

namespace tenon {

// How the bits of such a type stand for a number: a sign, an exponent and a fraction, as IEEE 754
// has them, but for what `special` says.
struct FloatFormat {
  enum Special : uint8_t {
    kInfinities,    // and NaNs have the greatest exponent, as in IEEE 754
    kOneNan,        // all ones but for the sign; no infinities
    kNegativeZero,  // is the only NaN; no infinities
    kNone,          // neither infinities nor NaNs
    kPowers,        // no sign, no fraction and no zero: 2^(bits - bias); all ones is a NaN
  };
  DataType dtype;
  uint8_t exponent_bits;
  uint8_t fraction_bits;
  int16_t bias;  // of the exponent
  Special special;

  constexpr uint16_t magnitude_mask() const {
    return static_cast<uint16_t>((1u << (exponent_bits + fraction_bits)) - 1);
  }
  // The bits of infinity, or else of the NaN beside the greatest number; one more than the
  // greatest number's if there is neither.
  constexpr uint16_t end_of_numbers() const {
    if (special == kInfinities)
      return static_cast<uint16_t>(magnitude_mask() - ((1u << fraction_bits) - 1));
    const bool has_nan = special == kOneNan || special == kPowers;
    return static_cast<uint16_t>(magnitude_mask() + (has_nan ? 0 : 1));
  }
  constexpr uint16_t sign_bit() const {
    return static_cast<uint16_t>(special == kPowers ? 0 : magnitude_mask() + 1);
  }
};

// The format of a type for which is_narrow_float() holds and that tensors may have.
const FloatFormat& format_of(DataType dtype);

// The value rounded to the float type, ties to even. Beyond the greatest number: infinity, else
// NaN, else the greatest number. f8e8m0fnu has only positive powers of 2: ties go up, what is too
// small becomes the least one, zero and negative numbers NaN. NaN becomes 0 in f4e2m1fn.
double round_to(DataType dtype, double value);

// The number of a narrow type with these bits, and the bits of the value, which is rounded.
double narrow_value(DataType dtype, uint16_t bits);
uint16_t narrow_bits(DataType dtype, double value);

}  // namespace tenon
