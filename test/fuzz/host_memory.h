// Memory and tensors that a host lends to the C interface, with random descriptions: most are of
// small tensors, a few of none that there could be. A description never claims more memory than
// there is. What is lent must be given back once: `lent` counts, and a sanitizer sees the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "instruction_generator.h"
#include "tenon/c_api.h"

namespace tenon::fuzz {

inline constexpr DLDevice kHost = {kDLCPU, 0};

inline long lent = 0;  // blocks

inline void* lend(size_t bytes) {
  ++lent;
  return std::calloc(std::max<size_t>(bytes, 1), 1);
}
inline void take_back(void* block) {
  --lent;
  std::free(block);
}

inline int64_t any_number(Choices& choices) {
  static constexpr int64_t kNumbers[] = {-1, 0, 1, 2, 3, 5, 64, 1 << 20, INT64_MAX, INT64_MIN};
  return choices.of(kNumbers);
}

inline std::vector<int64_t> any_dims(Choices& choices) {
  std::vector<int64_t> out;
  for (uint64_t rank = choices.below(choices.one_in(16) ? 40 : 4); rank > 0; --rank) {
    const bool strange = choices.one_in(24);
    out.push_back(strange ? any_number(choices) : static_cast<int64_t>(choices.below(4)));
  }
  return out;
}

inline DLDataType any_dtype(Choices& choices) {
  static constexpr DLDataType kTypes[] = {
      {kDLFloat, 32, 1}, {kDLFloat, 64, 1}, {kDLFloat, 16, 1},        {kDLBfloat, 16, 1},
      {kDLInt, 64, 1},   {kDLInt, 8, 1},    {kDLUInt, 8, 1},          {kDLBool, 8, 1},
      {kDLInt, 4, 1},    {kDLFloat, 32, 4}, {kDLOpaqueHandle, 64, 1}, {kDLComplex, 64, 1},
      {kDLFloat, 0, 1},  {kDLFloat, 32, 0}, {255, 255, 65535},
  };
  constexpr size_t kCommon = 8;  // the first ones
  return kTypes[choices.below(choices.one_in(4) ? std::size(kTypes) : kCommon)];
}

// The bytes of a tensor with sizes up to kLargest, 2^30 for more; 0 if there is none of that shape.
inline constexpr int64_t kLargest = 64;
inline size_t bytes_of(const std::vector<int64_t>& dims, DLDataType type) {
  size_t bytes = (size_t{type.bits} * type.lanes + 7) / 8;
  for (const int64_t size : dims) {
    if (size < 0 || size > kLargest) return 0;
    bytes = std::min(bytes * static_cast<size_t>(size), size_t{1} << 30);
  }
  return bytes;
}

// A tensor in a lent block, which `tensor.data` is. `tensor` refers to the vectors.
struct HostTensor {
  DLTensor tensor{};
  std::vector<int64_t> dims, strides;

  explicit HostTensor(Choices& choices) : dims(any_dims(choices)) {
    const DLDataType type = any_dtype(choices);
    for (int64_t& size : dims) size = std::min(size, kLargest);
    if (bytes_of(dims, type) > 1 << 16) dims.assign(dims.size(), 1);
    tensor.dtype = type;
    tensor.device = kHost;
    tensor.ndim = static_cast<int32_t>(dims.size());
    tensor.shape = dims.data();
    if (choices.one_in(4)) {  // the first axis is innermost, or elements are repeated along one
      int64_t step = 1;
      for (const int64_t size : dims) {
        strides.push_back(choices.one_in(4) ? 0 : step);
        step = size < 0 ? step : step * size;
      }
      tensor.strides = strides.data();
    }
    tensor.byte_offset = choices.one_in(8) ? 64 : 0;
    tensor.data = lend(tensor.byte_offset + bytes_of(dims, type));
  }
  HostTensor(const HostTensor&) = delete;
};

// The same as DLPack has it; Managed is one of its two structs. Its deleter gives the block back.
template <class Managed>
Managed* lend_managed(Choices& choices) {
  struct Lender : HostTensor {
    using HostTensor::HostTensor;
    Managed managed{};
  };
  auto* const lender = new Lender(choices);
  lender->managed.dl_tensor = lender->tensor;
  lender->managed.manager_ctx = lender;
  lender->managed.deleter = [](Managed* self) {
    auto* const ended = static_cast<Lender*>(self->manager_ctx);
    take_back(ended->tensor.data);
    delete ended;
  };
  return &lender->managed;
}

}  // namespace tenon::fuzz
