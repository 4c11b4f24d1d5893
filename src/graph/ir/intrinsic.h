// Memory made explicit: the packed names that passes after lowering use, which the emitter turns
// into instructions. They stand in text as calls of packed functions like any other.
//
//   memory.storage(){size: dim, device: int}             -> opaque["storage"]; without a device, on
//                                                           the host
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

// Of a storage: an index into the module's devices, as a tensor type has it.
inline constexpr char kDeviceAttr[] = "device";

inline constexpr char kStorageType[] = "storage";

// Which intrinsic a right-hand side calls, if any.
std::optional<MemoryIntrinsic> memory_intrinsic(const Call& call);
std::optional<MemoryIntrinsic> memory_intrinsic(const ExprRef& value);

// Whether the call is one of an intrinsic. Throws Error (Usage) for an intrinsic's call of another
// form than the list above, and for any other name that begins with "memory.".
bool check_intrinsic(const Call& call);

// Every planned offset and storage is aligned to this.
inline constexpr int64_t kTensorAlignment = 64;

}  // namespace tenon::graph
