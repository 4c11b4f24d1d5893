// The type numbers in an Any and in an object's header.
//
// Below 0x100000 they are tvm-ffi 0.1's. The rest are ours, in one block per folder; each folder
// numbers its types within its block by hand and never reuses a number.
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
    Array = 0x100000,
    Map = 0x100001,
    Storage = 0x100002,
    Module = 0x100003,
    Opaque = 0x100004,         // a host's pointer with a finaliser
    StringTensor = 0x100005,   // ONNX's string tensors
    LibraryBegin = 0x100080,   // src/library
    VmBegin = 0x100100,        // src/vm: adt, closure, executable, program, machine
    LoopBegin = 0x100200,      // src/loop
    GraphBegin = 0x100400,     // src/graph
    CompilerBegin = 0x100800,  // src/codegen, src/import, src/driver
    TestBegin = 0x100f00,
    OursEnd = 0x101000,
    ObjectEnd = 0x7fffffff,
  };
};

}  // namespace tenon
