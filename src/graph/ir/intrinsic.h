// Memory made explicit: the packed names that passes after lowering use, which the emitter turns
// into instructions. They stand in text as calls of packed functions like any other.
//
//   memory.storage(){size: dim}                          -> opaque["storage"]
//   memory.tensor(storage){offset: dim, shape: dims}     -> the stated tensor type, at that byte
//   memory.reshape(x){shape: dims}                       -> x's elements, sharing its memory
//   memory.values(){values: dims}                        -> a new integer tensor of rank 0 or 1
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir/expr.h"

namespace tenon::graph {

enum class MemoryIntrinsic : uint8_t { kStorage, kTensor, kReshape, kValues };

inline constexpr char kMemoryStorage[] = "memory.storage";
inline constexpr char kMemoryTensor[] = "memory.tensor";
inline constexpr char kMemoryReshape[] = "memory.reshape";
inline constexpr char kMemoryValues[] = "memory.values";
// Attributes of packed calls that steer the compiler and never reach the callee: how many results
// it writes into tensors that follow the operands, and that it keeps none of its arguments.
inline constexpr char kDestinationsAttr[] = "destinations";
inline constexpr char kNoRetainAttr[] = "no_retain";

inline constexpr char kStorageType[] = "storage";

// Which intrinsic a right-hand side calls, if any.
std::optional<MemoryIntrinsic> memory_intrinsic(const Call& call);
std::optional<MemoryIntrinsic> memory_intrinsic(const ExprRef& value);

// Throws Error (Usage) unless a packed call with a stated result is one that the compiler knows
// what to do with: an intrinsic has the operands, attributes and result of the list above, and no
// other name begins with "memory."; a result states no elements that nobody checks; the steering
// attributes are of their kind, and a result that goes into a tensor is one of known dimensions.
void check_packed_call(const Call& call);

// Every planned offset and storage is aligned to this.
inline constexpr int64_t kTensorAlignment = 64;

}  // namespace tenon::graph
