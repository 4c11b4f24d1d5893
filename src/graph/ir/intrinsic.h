// Memory made explicit: the packed names that passes after lowering use, which the emitter turns
// into instructions. They stand in text as calls of packed functions like any other.
//
//   memory.storage(){size: dim}                          -> opaque["storage"]
//   memory.tensor(storage){offset: dim, shape: dims}     -> the stated tensor type, at that byte
//   memory.reshape(x){shape: dims}                       -> x's elements, sharing its memory
//   memory.values(){values: dims}                        -> a new integer tensor of rank 0 or 1
//   memory.rank0(scalar)                                 -> a new tensor of rank 0
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::graph {

inline constexpr char kMemoryStorage[] = "memory.storage";
inline constexpr char kMemoryTensor[] = "memory.tensor";
inline constexpr char kMemoryReshape[] = "memory.reshape";
inline constexpr char kMemoryValues[] = "memory.values";
inline constexpr char kMemoryRank0[] = "memory.rank0";
// Attributes of packed calls that steer the compiler and never reach the callee: how many results it
// writes into tensors that follow the operands, and that it keeps none of its arguments.
inline constexpr char kDestinationsAttr[] = "destinations";
inline constexpr char kNoRetainAttr[] = "no_retain";

inline constexpr char kStorageType[] = "storage";

inline bool is_memory_intrinsic(std::string_view packed_name) {
  return packed_name.starts_with("memory.");
}

// Every planned offset and storage is aligned to this.
inline constexpr int64_t kTensorAlignment = 64;

}  // namespace tenon::graph
