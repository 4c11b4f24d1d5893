// Pages of memory that lie in a file.
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

// Maps the pages of [data, data + bytes) in one step instead of one by one as they are read. Only
// speed depends on it.
inline void populate_pages(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data), page = begin & ~(kPageBytes - 1);
  madvise(reinterpret_cast<void*>(page), begin - page + bytes, MADV_POPULATE_READ);
}

}  // namespace tenon
