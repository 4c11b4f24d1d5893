// Memory intrinsics: packed functions that the parser (to_scalar, to_tensor) and passes after
// lowering use and the emitter turns into instructions. In text they are calls of packed functions
// like any other.
//
//   memory.storage(){size: dim, device: int}             -> opaque["storage"]; without a device, on
//                                                           the host
//   memory.tensor(storage){offset: dim, shape: dims}     -> the stated tensor type, at that byte
//   memory.reshape(x){shape: dims}                       -> x's elements, sharing its memory
//   memory.values(){values: dims}                        -> a new integer tensor of rank 0 or 1
//   memory.element(x)                                    -> a scalar: the only element of x
//   memory.of_element(scalar)                            -> a new tensor of rank 0
//   memory.rank(x)                                       -> a tensor's rank as an i64
//   memory.concurrent(){count: int}                      -> (); the next count bindings, calls that
//                                                           write destinations, may run at the same
//                                                           time
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir/expr.h"

namespace tenon::graph {

enum class MemoryIntrinsic : uint8_t {
  kStorage,
  kTensor,
  kReshape,
  kValues,
  kElement,
  kOfElement,
  kRank,
  kConcurrent,
};

inline constexpr char kMemoryStorage[] = "memory.storage";
inline constexpr char kMemoryTensor[] = "memory.tensor";
inline constexpr char kMemoryReshape[] = "memory.reshape";
inline constexpr char kMemoryValues[] = "memory.values";
inline constexpr char kMemoryElement[] = "memory.element";
inline constexpr char kMemoryOfElement[] = "memory.of_element";
inline constexpr char kMemoryRank[] = "memory.rank";
inline constexpr char kMemoryConcurrent[] = "memory.concurrent";

inline constexpr char kStorageType[] = "storage";

// The attributes of a call of each intrinsic, and what a call's attributes say.
Attrs storage_attrs(const Dim& bytes, int64_t device);  // the device as in a tensor type
Dim bytes_of_storage(const Call& call);
int64_t device_of_storage(const Call& call);
Attrs tensor_attrs(const Dim& offset, const Array<Dim>& shape);
Dim offset_of_tensor(const Call& call);
Attrs reshape_attrs(const Array<Dim>& shape);
Array<Dim> stated_shape(const Call& call);  // of a tensor or reshape
Attrs values_attrs(const Array<Dim>& all);
Array<Dim> stated_values(const Call& call);
Attrs concurrent_attrs(int64_t count);
// How many of the bindings after this one belong to the group that it heads (memory.concurrent).
int64_t grouped_after(const ExprRef& value);

// The intrinsic that a call calls, if any.
std::optional<MemoryIntrinsic> memory_intrinsic(const Call& call);
std::optional<MemoryIntrinsic> memory_intrinsic(const ExprRef& value);

// Whether the call calls an intrinsic. Throws Usage for a call of an intrinsic that doesn't have
// the form in the list above, and for other names that begin with "memory.".
bool check_intrinsic(const Call& call);

// The alignment of every storage and planned offset.
inline constexpr int64_t kTensorAlignment = 64;

}  // namespace tenon::graph
