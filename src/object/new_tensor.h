// How tensor objects are made, for the sources of Tensor's functions and the C interface.
#pragma once

#include <cstdint>
#include <span>

#include "object/tensor.h"

namespace tenon {

// A tensor over memory that `owner` keeps alive. `strides` are in elements and may be null for a
// compact tensor; `flags` are bits of LayoutWord.
Ref<TensorObj> new_tensor(void* data, uint64_t byte_offset, DLDevice device, DataType dtype,
                          std::span<const int64_t> shape, const int64_t* strides, Ref<Object> owner,
                          uint64_t flags);

// The same for a foreign tensor, after checking that it can be represented. Throws Usage for an
// invalid one and Unsupported for its dtype.
Ref<TensorObj> wrap_tensor(const DLTensor& t, Ref<Object> owner, uint64_t flags);

// The same over memory of the host. `end(context)`, if not null, runs when the last view of it
// dies, or at once if this throws.
Tensor host_tensor(const DLTensor& view, bool read_only, void* context, void (*end)(void*));

}  // namespace tenon
