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

// A tensor with the shape, strides, dtype and data of `like`, which `owner` keeps alive. Null
// strides stand for a compact tensor; `flags` are bits of LayoutWord. With `host`, which may be
// null, and no owner, the tensor gives the memory back when it dies.
Ref<TensorObj> new_tensor(const DLTensor& like, Ref<Object>&& owner, uint64_t flags,
                          const HostMemory* host = nullptr);

// A tensor over memory of the host, after checking that it can be represented. `memory.end`, if not
// null, is called when the last view of it dies, or at once if this throws: Usage for an invalid
// tensor, Unsupported for its dtype.
Tensor host_tensor(const DLTensor& view, bool read_only, const HostMemory& memory);

// Of a tensor with a valid rank.
inline std::span<const int64_t> shape_of(const DLTensor& t) {
  return {t.shape, static_cast<size_t>(t.ndim)};
}

}  // namespace tenon
