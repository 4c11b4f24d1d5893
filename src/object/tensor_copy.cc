// Copies of tensors' elements.
#include <algorithm>
#include <array>
#include <cstring>

#include "object/tensor.h"
#include "support/poll.h"

namespace tenon {

namespace {

// Copies `count` elements of `size` bytes, whose distance is `step` bytes, without gaps.
void copy_row(char* to, const char* from, int64_t count, int64_t size, int64_t step,
              Ticker* ticker) {
  constexpr int64_t kPart = int64_t{1} << 18;  // elements
  for (int64_t at = 0; at < count; at += kPart) {
    const int64_t end = std::min(count, at + kPart);
    if (step == size) {
      std::memcpy(to + at * size, from + at * size, static_cast<size_t>((end - at) * size));
    } else {
      for (int64_t i = at; i < end; ++i) {
        std::memcpy(to + i * size, from + i * step, static_cast<size_t>(size));
      }
    }
    ticker->tick(static_cast<size_t>((end - at) * size));
  }
}

}  // namespace

void Tensor::copy_elements(void* memory) const {
  if (device().device_type != kDLCPU) {
    throw Error(ErrorKind::Unsupported, "a strided tensor on a device can't be made compact here");
  }
  const int64_t size = dtype().bytes();
  const char* from = static_cast<const char*>(data());
  char* to = static_cast<char*>(memory);
  Ticker ticker;
  if (count() == 0) return;
  if (compact()) return copy_row(to, from, count(), size, size, &ticker);
  const auto last = static_cast<size_t>(rank()) - 1;  // a tensor of rank 0 is compact
  const int64_t inner = dim(rank() - 1);
  std::array<int64_t, kMaxRank> at{};
  int64_t offset = 0;
  for (int64_t row = 0, rows = count() / inner; row < rows; ++row, to += inner * size) {
    copy_row(to, from + offset, inner, size, strides()[last] * size, &ticker);
    for (size_t i = last; i-- > 0;) {
      const int64_t step = strides()[i] * size, extent = shape()[i];
      offset += step;
      if (++at[i] < extent) break;
      offset -= step * extent;
      at[i] = 0;
    }
  }
}

}  // namespace tenon
