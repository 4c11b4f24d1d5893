// Copies and fills of any size on the host that stop soon when the call which they work for is to
// stop: they ask between parts of a few milliseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/call_context.h"

namespace tenon {

inline constexpr size_t kBulkPart = size_t{8} << 20;

// Calls part(offset, bytes) for the parts of 0..bytes in order, polling between them.
template <class F>
void in_parts(size_t bytes, F&& part) {
  for (size_t at = 0; at < bytes; at += kBulkPart) {
    if (at) poll();
    part(at, std::min(kBulkPart, bytes - at));
  }
}

inline void fill_memory(void* to, int byte, size_t bytes) {
  in_parts(bytes, [&](size_t at, size_t n) { std::memset(static_cast<char*>(to) + at, byte, n); });
}

// Apart from each other.
inline void copy_memory(void* to, const void* from, size_t bytes) {
  in_parts(bytes, [&](size_t at, size_t n) {
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, n);
  });
}

}  // namespace tenon
