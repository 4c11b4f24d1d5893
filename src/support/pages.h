// Advice to the system on pages of memory. Only speed depends on it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older kernels refuse it
#endif

namespace tenon {

// Where pages are larger, madvise refuses addresses within one; only speed is lost.
inline constexpr uintptr_t kPageBytes = 4096;

// Maps the pages of [data, data + bytes), which lie in a file, in one step instead of one by one as
// they are read.
inline void populate_pages(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data), page = begin & ~(kPageBytes - 1);
  madvise(reinterpret_cast<void*>(page), begin - page + bytes, MADV_POPULATE_READ);
}

// Lets large pages back new memory, as far as they lie within it: a first write to each of them
// then maps 2 MB instead of 4 KB.
inline void use_large_pages(void* data, size_t bytes) {
  constexpr uintptr_t kLarge = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + kLarge - 1) & ~(kLarge - 1),
                  end = (address + bytes) & ~(kLarge - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace tenon
