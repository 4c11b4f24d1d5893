// The type numbers in an Any and in an object's header.
//
// Below 0x100000 they are tvm-ffi 0.1's. The rest are ours: type_indices.def lists them.
#pragma once

#include <cstdint>

namespace tenon {

struct TypeIndex {
  enum : int32_t {
    None = 0,
    Int = 1,
    Bool = 2,
    Float = 3,
    OpaquePtr = 4,
    DataType = 5,
    Device = 6,
    DLTensorPtr = 7,   // a bare DLTensor*: refused on entry
    RawStr = 8,        // const char*: copied on entry
    ByteArrayPtr = 9,  // copied on entry
    ObjectRValueRef = 10,
    SmallStr = 11,    // up to 7 bytes, inside the Any
    SmallBytes = 12,  // the same
    ObjectBegin = 64,
    Object = 64,
    Str = 65,
    Bytes = 66,
    Error = 67,
    Function = 68,
    Shape = 69,
    Tensor = 70,

    OursBegin = 0x100000,
#define TENON_TYPE_INDEX(identifier, number) identifier = (number),
#define TENON_BASE_TYPE_INDEX(identifier, first, last) \
  identifier = (first), identifier##Last = (last),
#include "object/type_indices.def"
    TestBegin = 0x100f00,
    OursEnd = 0x101000,
    ObjectEnd = 0x7fffffff,
  };
};

}  // namespace tenon
