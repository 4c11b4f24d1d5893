// How tensor objects are made, for the sources of Tensor's functions, the C interface and the
// machine.
#pragma once

#include <cstdint>
#include <span>

#include "object/tensor.h"

namespace tenon {

// What a compact tensor is made of besides its place, worked out once where its dimensions are
// known.
class CompactForm {
 public:
  // Writes the dimensions and the strides to `room`, which must have 2 * shape.size() items and
  // outlive the form. A Runtime error if there can be no such tensor.
  CompactForm(DataType dtype, std::span<const int64_t> shape, int64_t* room);

  // The tensor that starts at byte `offset` of `storage`, whose read-only and pooled flags it
  // inherits. A Runtime error if it doesn't fit.
  Tensor at(Ref<StorageObj> storage, uint64_t offset) const;

  size_t bytes() const { return bytes_; }

 private:
  std::span<const int64_t> shape() const { return {room_, rank_}; }

  DataType dtype_;
  size_t rank_;
  size_t bytes_;
  const int64_t* room_;
};

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
