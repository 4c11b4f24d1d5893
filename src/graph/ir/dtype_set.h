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
inline constexpr DtypeSet kSigned{0x1e};     // i8 i16 i32 i64
inline constexpr DtypeSet kUnsigned{0x1e0};  // u8 u16 u32 u64
inline constexpr DtypeSet kFloats{0xe00};    // f16 f32 f64
inline constexpr DtypeSet kIndices{0x18};    // i32 i64
inline constexpr DtypeSet kInts = kSigned | kUnsigned;
inline constexpr DtypeSet kNumbers = kInts | kFloats;
inline constexpr DtypeSet kAll = kNumbers | kBools;
inline constexpr DtypeSet kAny{0xffffffff};  // including types without a bit

bool contains(DtypeSet set, DataType dtype);
// The types of the set in the order of their bits.
std::vector<DataType> members(DtypeSet set);
// "a number", "a float", "int32 or int64"
std::string describe(DtypeSet set);

}  // namespace tenon::graph
