// Sets of element types that an operand of an operator may have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "object/dtype.h"

namespace tenon::graph {

// One bit per type, joined with |.
enum class DtypeSet : uint32_t {};

constexpr DtypeSet operator|(DtypeSet a, DtypeSet b) {
  return static_cast<DtypeSet>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

// The set of one type; empty if no bit represents the type.
DtypeSet only(DataType dtype);

inline constexpr DtypeSet kBools{0x1};
inline constexpr DtypeSet kSigned{0x1e};            // i8 i16 i32 i64
inline constexpr DtypeSet kUnsigned{0x1e0};         // u8 u16 u32 u64
inline constexpr DtypeSet kFloats{0x1e00};          // f16 bf16 f32 f64
inline constexpr DtypeSet kBytes{0x22};             // i8 u8
inline constexpr DtypeSet kNarrowInts{0x1e000};     // i2 i4 u2 u4
inline constexpr DtypeSet kNarrowFloats{0x7e0000};  // of 4 and 8 bits
inline constexpr DtypeSet kIndices{0x18};           // i32 i64
inline constexpr DtypeSet kInts = kSigned | kUnsigned;
inline constexpr DtypeSet kNumbers = kInts | kFloats;
inline constexpr DtypeSet kNarrow = kNarrowInts | kNarrowFloats;  // for storage: moved and cast
inline constexpr DtypeSet kOrdered = kNumbers | kBools;
inline constexpr DtypeSet kAll = kOrdered | kNarrow;
inline constexpr DtypeSet kStrings{0x800000};
inline constexpr DtypeSet kData = kAll | kStrings;  // whatever is only moved
inline constexpr DtypeSet kAny{0xffffffff};         // including types without a bit

bool contains(DtypeSet set, DataType dtype);
// The types of the set in the order of their bits.
std::vector<DataType> members(DtypeSet set);
// "a number", "a float", "int32 or int64"
std::string describe(DtypeSet set);

}  // namespace tenon::graph
