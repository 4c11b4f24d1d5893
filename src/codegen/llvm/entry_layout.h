// The layouts that entries read their arguments in, and their descriptions of parameters for
// `refuse`.
#pragma once

#include <cstdint>

namespace tenon::codegen {

// Byte offsets in an Any and in a TensorObj, asserted by object/abi_layout.cc.
inline constexpr int64_t kAnySize = 16, kAnyPayload = 8;
inline constexpr int64_t kData = 24, kDevice = 32, kRank = 40, kDtype = 44, kShape = 48,
                         kStrides = 56, kByteOffset = 64, kLayout = 72;

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
