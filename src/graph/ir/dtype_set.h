// Sets of element types that an operand of an operator may have.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "object/dtype.h"

namespace tenon::graph {

// One bit per type, joined with |.
enum class DtypeSet : uint32_t {};

constexpr DtypeSet operator|(DtypeSet a, DtypeSet b) {
  return static_cast<DtypeSet>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

// The type of each bit, from the lowest. A type without a bit is in no set but kAny.
inline constexpr DataType kDtypes[] = {
#define TENON_DTYPE(identifier, ...) identifier,
#include "tenon/dtypes.def"
};

static_assert(std::size(kDtypes) <= 32, "a set has a bit for each");

// The set of one type; empty if no bit represents the type.
constexpr DtypeSet only(DataType dtype) {
  uint32_t bit = 1;
  for (const DataType t : kDtypes) {
    if (t == dtype) return DtypeSet{bit};
    bit <<= 1;
  }
  return {};
}

inline constexpr DtypeSet kBools = only(boolean);
inline constexpr DtypeSet kSigned = only(i8) | only(i16) | only(i32) | only(i64);
inline constexpr DtypeSet kUnsigned = only(u8) | only(u16) | only(u32) | only(u64);
inline constexpr DtypeSet kFloats = only(f16) | only(bf16) | only(f32) | only(f64);
inline constexpr DtypeSet kBytes = only(i8) | only(u8);
inline constexpr DtypeSet kNarrowInts = only(i2) | only(i4) | only(u2) | only(u4);
inline constexpr DtypeSet kNarrowFloats = only(f4e2m1fn) | only(f8e4m3fn) | only(f8e4m3fnuz) |
                                          only(f8e5m2) | only(f8e5m2fnuz) | only(f8e8m0fnu);
inline constexpr DtypeSet kIndices = only(i32) | only(i64);
inline constexpr DtypeSet kInts = kSigned | kUnsigned;
inline constexpr DtypeSet kNumbers = kInts | kFloats;
inline constexpr DtypeSet kNarrow = kNarrowInts | kNarrowFloats;  // for storage: moved and cast
inline constexpr DtypeSet kOrdered = kNumbers | kBools;
inline constexpr DtypeSet kAll = kOrdered | kNarrow;  // whatever can be cast
inline constexpr DtypeSet kComplex = only(c64) | only(c128);
inline constexpr DtypeSet kElements = kAll | kComplex;  // those of tensors of numbers
inline constexpr DtypeSet kStrings = only(string_elements);
inline constexpr DtypeSet kData = kElements | kStrings;  // whatever is only moved
inline constexpr DtypeSet kAny{0xffffffff};              // including types without a bit

bool contains(DtypeSet set, DataType dtype);
// The types of the set in the order of their bits.
std::vector<DataType> members(DtypeSet set);
// "a number", "a float", "i32 or i64"
std::string describe(DtypeSet set);

}  // namespace tenon::graph
