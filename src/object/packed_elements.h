// Elements narrower than a byte, as files and DLPack have them: as many to a byte as fit, the first
// in the lowest bits. In Tenon's tensors, each takes a byte.
#pragma once

#include <span>
#include <string>

#include "object/tensor.h"

namespace tenon {

// The bytes that `count` packed elements take.
constexpr int64_t packed_bytes(DataType dtype, int64_t count) {
  const int64_t per_byte = 8 / dtype.bits;
  return count / per_byte + (count % per_byte != 0);
}

// `bytes` has at least those of the shape's elements.
Tensor unpack_elements(std::span<const uint8_t> bytes, std::span<const int64_t> shape,
                       DataType dtype);
// Of a compact tensor on the host.
std::string pack_elements(const Tensor& tensor);

}  // namespace tenon
