// Memory intrinsics (intrinsics.def): calls of them, and what such calls say.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir/expr.h"

namespace tenon::graph {

enum class MemoryIntrinsic : uint8_t {
#define TENON_MEMORY_INTRINSIC(identifier, ...) k##identifier,
#include "graph/ir/intrinsics.def"
};

// kMemoryStorage and so on.
#define TENON_MEMORY_INTRINSIC(identifier, name, ...) \
  inline constexpr char kMemory##identifier[] = name;
#include "graph/ir/intrinsics.def"

inline constexpr char kStorageType[] = "storage";

// Calls, which state the types of their results, and what they say.
Ref<const Call> storage_call(const Dim& bytes, int64_t device);  // the device as in a tensor type
Dim bytes_of_storage(const Call& call);
int64_t device_of_storage(const Call& call);
Ref<const Call> tensor_call(const Operand& storage, const Dim& offset,
                            const Ref<const TensorType>& type);
Dim offset_of_tensor(const Call& call);
Ref<const Call> reshape_call(const Operand& x, const Ref<const TensorType>& type);
Array<Dim> stated_shape(const Call& call);                       // of a tensor or reshape
Ref<const Call> values_call(const Ref<const TensorType>& type);  // which knows its values
Array<Dim> stated_values(const Call& call);
Ref<const Call> element_call(const Operand& tensor);
Ref<const Call> of_element_call(const Operand& scalar);
Ref<const Call> rank_call(const Operand& tensor);
Ref<const Call> concurrent_call(int64_t count);
inline constexpr size_t kMostConcurrent = 256;  // calls of a group
// How many of the bindings after this one belong to the group that it heads (memory.concurrent).
int64_t grouped_after(const ExprRef& value);

// The intrinsic that a call calls, if any.
std::optional<MemoryIntrinsic> memory_intrinsic(const Call& call);
std::optional<MemoryIntrinsic> memory_intrinsic(const ExprRef& value);

// Whether the call calls an intrinsic. Throws Usage for a call of an intrinsic that doesn't have
// the form of its row, and for other names that begin with "memory.".
bool check_intrinsic(const Call& call);

// The alignment of every storage and planned offset.
inline constexpr int64_t kTensorAlignment = 64;

}  // namespace tenon::graph
