#include "object/packed_elements.h"

#include "support/poll.h"

namespace tenon {

Tensor unpack_elements(std::span<const uint8_t> bytes, std::span<const int64_t> shape,
                       DataType dtype) {
  Tensor out = Tensor::empty(shape, dtype);
  // The bits of a float aren't a number to be extended.
  const DataType number(dtype.is_signed_int() ? kDLInt : kDLUInt, dtype.bits);
  const size_t per_byte = 8u / dtype.bits;
  auto* to = out.data_as<uint8_t>();
  Ticker ticker;
  for (size_t i = 0, n = static_cast<size_t>(out.count()); i < n; ++i) {
    ticker.tick();
    to[i] =
        static_cast<uint8_t>(wrap_to(number, bytes[i / per_byte] >> (i % per_byte * dtype.bits)));
  }
  return out;
}

std::string pack_elements(const Tensor& tensor) {
  const DataType dtype = tensor.dtype();
  const size_t per_byte = 8u / dtype.bits;
  std::string packed(static_cast<size_t>(packed_bytes(dtype, tensor.count())), '\0');
  const auto* from = tensor.data_as<uint8_t>();
  Ticker ticker;
  for (size_t i = 0, n = static_cast<size_t>(tensor.count()); i < n; ++i) {
    ticker.tick();
    const unsigned element = from[i] & ((1u << dtype.bits) - 1);
    char& byte = packed[i / per_byte];
    byte = static_cast<char>(byte | element << (i % per_byte * dtype.bits));
  }
  return packed;
}

}  // namespace tenon
