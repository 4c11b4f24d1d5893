// Floats narrower than f32: their bits in memory, and f32 in registers. object/narrow_float.h
// defines what the bits mean and how numbers are rounded.
#include <bit>
#include <cmath>

#include "codegen/llvm/math.h"
#include "object/narrow_float.h"

namespace tenon::codegen {
namespace {

constexpr unsigned kFraction = 23, kBias = 127;  // of f32
constexpr uint32_t kInfinity = 0x7f800000, kNan = 0x7fc00000;

uint32_t bits_of(double v) {
  return std::bit_cast<uint32_t>(static_cast<float>(v));
}

Num widen(Num bits) {
  return bits.with(bits.b->CreateZExt(bits.v, bits.shape_of(bits.b->getInt32Ty())));
}

Num shortened(Num bits, DataType dtype) {
  auto* type = bits.b->getIntNTy(static_cast<unsigned>(8 * dtype.bytes()));
  return bits.with(bits.b->CreateTrunc(bits.v, bits.shape_of(type)));
}

// How far the sign is below f32's.
unsigned sign_distance(const FloatFormat& format) {
  return 31u - (format.exponent_bits + format.fraction_bits);
}

// f8e8m0fnu's bits are those of f32's exponent; its least number is subnormal in f32.
Num from_power(Num wide) {
  Num power = shl(wide, kFraction);
  Num number = pick(same(wide, 0), wide.i(0x400000), power);
  return pick(same(wide, 255), wide.i(kNan), number).float_bits();
}

Num to_power(Num bits) {
  Num normal = lshr(add(bits, 0x400000), kFraction);
  Num at_least_1_5 = !below(bits, 0x600000);  // of the least number
  Num subnormal = pick(at_least_1_5, bits.i(1), bits.i(0));
  Num number = pick(below(bits, 0x800000), subnormal, normal);
  Num positive = below(sub(bits, 1), kInfinity);
  return pick(positive, number, bits.i(255));
}

// The product with a power of 2 makes up for the difference of the exponents' biases; it is exact,
// for subnormal numbers, too.
Num from_small(Num wide, const FloatFormat& format) {
  const unsigned shift = kFraction - format.fraction_bits;
  Num code = wide & format.magnitude_mask();
  Num moved = shl(code, shift);
  Num value =
      (moved.float_bits() * std::ldexp(1.0, static_cast<int>(kBias) - format.bias)).int_bits();
  switch (format.special) {
    case FloatFormat::kInfinities:
      value = pick(below(code, format.end_of_numbers()), value, moved | kInfinity);
      break;
    case FloatFormat::kOneNan:
      value = pick(same(code, format.end_of_numbers()), wide.i(kNan), value);
      break;
    default:
      break;
  }
  Num sign = shl(wide & format.sign_bit(), sign_distance(format));
  Num number = value | sign;
  if (format.special == FloatFormat::kNegativeZero)
    number = pick(same(wide, format.sign_bit()), wide.i(kNan), number);
  return number.float_bits();
}

// Adding a power of 2 whose last bit counts as much as the last one that the type has rounds to
// that bit, ties to even; subtracting it is exact.
Num to_small(Num bits, const FloatFormat& format) {
  const unsigned shift = kFraction - format.fraction_bits;
  const auto end = format.end_of_numbers();
  const double greatest = narrow_value(format.dtype, static_cast<uint16_t>(end - 1));
  const auto least = static_cast<uint32_t>(static_cast<int>(kBias) + 1 - format.bias) << kFraction;
  Num magnitude = bits & 0x7fffffff;
  Num bounded =
      pick(below(magnitude, bits_of(2 * greatest)), magnitude, bits.i(bits_of(2 * greatest)));
  Num own_exponent = bounded & kInfinity;
  Num exponent = pick(below(own_exponent, least), bits.i(least), own_exponent);
  Num power = add(exponent, shift << kFraction).float_bits();
  Num sum = bounded.float_bits() + power;
  Num rounded = sum - power;
  Num scaled = rounded * std::ldexp(1.0, format.bias - static_cast<int>(kBias));
  Num number = lshr(scaled.int_bits(), shift);
  Num beyond = !below(rounded.int_bits(), bits_of(greatest) + 1);
  Num nan = !below(magnitude, kInfinity + 1);
  Num sign = lshr(bits, sign_distance(format)) & format.sign_bit();
  switch (format.special) {
    case FloatFormat::kInfinities: {
      const unsigned quiet = end | 1u << (format.fraction_bits - 1);
      number = pick(beyond, bits.i(end), number);
      return pick(nan, bits.i(quiet), number) | sign;
    }
    case FloatFormat::kNegativeZero: {
      Num signed_number = pick(same(number, 0), number, number | sign);
      return pick(beyond | nan, bits.i(format.sign_bit()), signed_number);
    }
    case FloatFormat::kNone: {
      Num signed_number = pick(beyond, bits.i(end - 1u), number) | sign;
      return pick(nan, bits.i(0), signed_number);
    }
    default:
      return pick(beyond | nan, bits.i(end), number) | sign;
  }
}

}  // namespace

Num Math::from_narrow(Num bits, DataType dtype) {
  if (dtype == f16) return from_half(bits);
  if (dtype == bf16) return from_bfloat(bits);
  const FloatFormat& format = format_of(dtype);
  Num wide = widen(bits);
  return format.special == FloatFormat::kPowers ? from_power(wide) : from_small(wide, format);
}

Num Math::to_narrow(Num x, DataType dtype) {
  if (dtype == f16) return to_half(x);
  if (dtype == bf16) return to_bfloat(x);
  const FloatFormat& format = format_of(dtype);
  Num bits = x.int_bits();
  Num code = format.special == FloatFormat::kPowers ? to_power(bits) : to_small(bits, format);
  return shortened(code, dtype);
}

Num Math::from_half(Num bits) {
  Builder& b = *bits.b;
  if (has_half_conversion_) {
    llvm::Value* half = b.CreateBitCast(bits.v, bits.shape_of(b.getHalfTy()));
    return {&b, b.CreateFPExt(half, bits.shape_of(b.getFloatTy()))};
  }
  Num wide = {&b, b.CreateZExt(bits.v, bits.shape_of(b.getInt32Ty()))};
  Num magnitude = shl(wide & 0x7fff, 13);
  // The bias of a half's exponent is 112 less; the product is exact for denormals too.
  Num value = (magnitude.float_bits() * 0x1p112).int_bits();
  Num special = !below(magnitude, 0x7c00u << 13);
  value = pick(special, magnitude | 0x7f800000, value);
  return (value | shl(wide & 0x8000, 16)).float_bits();
}

Num Math::to_half(Num x) {
  Builder& b = *x.b;
  if (has_half_conversion_) {
    llvm::Value* half = b.CreateFPTrunc(x.v, x.shape_of(b.getHalfTy()));
    return {&b, b.CreateBitCast(half, x.shape_of(b.getInt16Ty()))};
  }
  Num bits = x.int_bits();
  Num magnitude = bits & 0x7fffffff;
  Num nan = !below(magnitude, 0x7f800001);
  Num huge = !below(magnitude, 0x47800000);  // 2^16 or more
  Num tiny = below(magnitude, 0x38800000);   // below 2^-14: a denormal half
  // 0.5 has the same unit in the last place as denormal halves: the addition rounds to it.
  Num denormal = sub((magnitude.float_bits() + 0.5).int_bits(), 0x3f000000);
  Num odd = lshr(magnitude, 13) & 1;
  Num normal = lshr(add(add(sub(magnitude, 112u << 23), 0xfff), odd), 13);
  Num result = pick(tiny, denormal, normal);
  result = pick(huge, pick(nan, bits.i(0x7e00), bits.i(0x7c00)), result);
  result = result | (lshr(bits, 16) & 0x8000);
  return {&b, b.CreateTrunc(result.v, x.shape_of(b.getInt16Ty()))};
}

Num Math::from_bfloat(Num bits) {
  Builder& b = *bits.b;
  Num wide = {&b, b.CreateZExt(bits.v, bits.shape_of(b.getInt32Ty()))};
  return shl(wide, 16).float_bits();
}

Num Math::to_bfloat(Num x) {
  Builder& b = *x.b;
  Num bits = x.int_bits();
  Num odd = lshr(bits, 16) & 1;
  Num rounded = add(add(bits, 0x7fff), odd);
  Num quiet = bits | 0x400000;
  Num result = lshr(pick(is_nan(x), quiet, rounded), 16);
  return {&b, b.CreateTrunc(result.v, x.shape_of(b.getInt16Ty()))};
}

}  // namespace tenon::codegen
