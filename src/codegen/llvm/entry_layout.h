// The layouts that entries read their arguments in, and their descriptions of parameters for
// `refuse`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "object/any.h"
#include "object/tensor.h"

namespace tenon::codegen {

// The layouts of this process are those of the targets, which have 64-bit pointers too.
static_assert(sizeof(void*) == 8);

// Byte offsets in an Any and in a TensorObj.
inline constexpr int64_t kAnySize = sizeof(Any), kAnyPayload = offsetof(AnyView, v);
#pragma GCC diagnostic push
// object/abi_layout.cc says why this is right for these types.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
inline constexpr int64_t kDlTensor = offsetof(TensorObj, dl);
inline constexpr int64_t kLayout = offsetof(TensorObj, layout);
#pragma GCC diagnostic pop
inline constexpr int64_t kData = kDlTensor + offsetof(DLTensor, data);
inline constexpr int64_t kDevice = kDlTensor + offsetof(DLTensor, device);
inline constexpr int64_t kRank = kDlTensor + offsetof(DLTensor, ndim);
inline constexpr int64_t kDtype = kDlTensor + offsetof(DLTensor, dtype);
inline constexpr int64_t kShape = kDlTensor + offsetof(DLTensor, shape);
inline constexpr int64_t kStrides = kDlTensor + offsetof(DLTensor, strides);
inline constexpr int64_t kByteOffset = kDlTensor + offsetof(DLTensor, byte_offset);

// A description is an array of 64-bit words:
//
//   0  tensors
//   1  inputs: the tensors before the first output
//   2  integers, which follow the tensors
//   3  words per tensor below: kTensorWords and the highest rank
//   4  pairs that may share memory; then these, as two arguments each, the output first
//   then for each tensor
//      0  layout word (object/tensor.h): dtype, rank, device, compact
//      1  bytes of an element
//      2  sizes; ~k for the k-th of those that the entry computes
inline constexpr int64_t kDescribedTensors = 0, kDescribedInputs = 1, kDescribedIntegers = 2,
                         kDescribedStep = 3, kDescribedPairs = 4, kDescriptionHead = 5;
inline constexpr uint64_t kTensorWords = 2;

// i32 check(runtime, name, description, arguments, count, sizes): raises an error for what is wrong
// with an entry's arguments, or returns 0. `sizes` are those that the entry computed; before it has
// computed them, null: then no data is checked, and sizes only if they are constant.
// i32 refuse(...) has the same parameters and never returns 0.
inline constexpr char kCheckSymbol[] = "tenon.check", kRefuseSymbol[] = "tenon.refuse";

}  // namespace tenon::codegen
