// DataType: the type of a tensor's elements: DLPack's code, bits and lanes, with named types.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "tenon/dlpack.h"

namespace tenon {

struct DataType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 0;

  constexpr DataType() = default;
  constexpr DataType(DLDataTypeCode c, int b, int l = 1)
      : code(static_cast<uint8_t>(c)),
        bits(static_cast<uint8_t>(b)),
        lanes(static_cast<uint16_t>(l)) {}
  constexpr DataType(DLDataType d) : code(d.code), bits(d.bits), lanes(d.lanes) {}
  constexpr operator DLDataType() const { return DLDataType{code, bits, lanes}; }
  constexpr bool operator==(const DataType&) const = default;

  // The three fields in one word, as in memory on a little-endian machine.
  constexpr uint32_t word() const {
    return uint32_t{code} | uint32_t{bits} << 8 | uint32_t{lanes} << 16;
  }
  static constexpr DataType from_word(uint32_t word) {
    DataType t;
    t.code = static_cast<uint8_t>(word);
    t.bits = static_cast<uint8_t>(word >> 8);
    t.lanes = static_cast<uint16_t>(word >> 16);
    return t;
  }
  // Bytes of an element; an element narrower than a byte takes a whole byte.
  constexpr int64_t bytes() const { return (int64_t{bits} * lanes + 7) / 8; }

  constexpr bool is_float() const {
    return code == kDLFloat || code == kDLBfloat ||
           (code >= kDLFloat8_e3m4 && code <= kDLFloat4_e2m1fn);
  }
  // A float that is computed with as f32 and rounded.
  constexpr bool is_narrow_float() const { return is_float() && bits < 32; }
  constexpr bool is_signed_int() const { return code == kDLInt; }
  constexpr bool is_unsigned_int() const { return code == kDLUInt; }
  constexpr bool is_int() const { return is_signed_int() || is_unsigned_int(); }
  constexpr bool is_bool() const { return code == kDLBool; }
  // Elements that are moved, but not computed with: there are no scalars of them.
  constexpr bool is_complex() const { return code == kDLComplex; }
  constexpr bool is_void() const { return bits == 0; }
};
static_assert(sizeof(DataType) == sizeof(DLDataType));

// The byte of a bool is 0 or 1. `string_elements` are those of string tensors
// (object/string_tensor.h): is_tensor_dtype (object/tensor.h) is false.
#define TENON_DTYPE(identifier, name, code, bits) inline constexpr DataType identifier{code, bits};
#include "tenon/dtypes.def"
inline constexpr std::string_view kStringElements = "string";  // the name of string_elements

// The type of the two parts of complex numbers; other types themselves.
constexpr DataType part_of(DataType dtype) {
  return dtype.is_complex() ? DataType(kDLFloat, dtype.bits / 2) : dtype;
}
// The element types that a tensor of numbers may have, in words.
inline constexpr std::string_view kTensorDtypes =
    "bool, i2 to i64, u2 to u64, f4e2m1fn, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, "
    "f16, bf16, f32, f64, c64 or c128";

// Wraps an integer to an integer type; for bool, returns value != 0.
constexpr int64_t wrap_to(DataType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  const int shift = 64 - dtype.bits;
  const uint64_t up = static_cast<uint64_t>(value) << shift;
  return dtype.is_signed_int() ? static_cast<int64_t>(up) >> shift
                               : static_cast<int64_t>(up >> shift);
}

// The name in Tenon's language: "f32", "i64", "bool", "bf16", "f8e5m2", "f32x4"; "void" for none.
std::string to_text(DataType t);
// Parses these names and NumPy's, including those of the package ml_dtypes: "float32", "int64",
// "bfloat16", "float8_e5m2"; nullopt for any other text.
std::optional<DataType> parse_dtype(std::string_view text);
// A tensor's type in Tenon's language, the notation of every message: "tensor[n, 4; f32]" for the
// sizes "n, 4"; "tensor[f32]", of rank 0, for none.
std::string tensor_type_text(std::string_view sizes, DataType dtype);

}  // namespace tenon
