// Host copies and fills of any size that can be interrupted: they poll between parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "support/poll.h"

namespace tenon {

// Copied or filled between two polls. Less than kPollBytes, since the first touch of a page may
// take ten times as long as copying it.
inline constexpr size_t kPartBytes = kPollBytes / 4;

// Calls part(offset, bytes) for consecutive parts of [0, bytes), polling between them.
template <class F>
void in_parts(size_t bytes, F&& part) {
  for (size_t at = 0; at < bytes; at += kPartBytes) {
    if (at) poll();
    part(at, std::min(kPartBytes, bytes - at));
  }
}

inline void fill_memory(void* to, int byte, size_t bytes) {
  in_parts(bytes, [&](size_t at, size_t n) { std::memset(static_cast<char*>(to) + at, byte, n); });
}

// The ranges must not overlap.
[[gnu::noinline]] inline void copy_memory(void* to, const void* from, size_t bytes) {
  in_parts(bytes, [&](size_t at, size_t n) {
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, n);
  });
}

}  // namespace tenon
