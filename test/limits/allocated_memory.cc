// Replaces the C library's allocator by functions that count what its own hand out.
#include "allocated_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

// glibc's own, below the names that are replaced.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* p);
}

namespace allocated_memory {
namespace {

thread_local int64_t now = 0, peak = 0;

void add(int64_t bytes) {
  now += bytes;
  peak = std::max(peak, now);
}
int64_t bytes_of(void* p) {
  return p ? static_cast<int64_t>(malloc_usable_size(p)) : 0;
}
void* counted(void* p) {
  add(bytes_of(p));
  return p;
}

}  // namespace

void begin() {
  now = peak = 0;
}
int64_t most() {
  return peak;
}

}  // namespace allocated_memory

extern "C" {

void* malloc(size_t size) {
  return allocated_memory::counted(__libc_malloc(size));
}
void* calloc(size_t count, size_t size) {
  return allocated_memory::counted(__libc_calloc(count, size));
}
void* realloc(void* p, size_t size) {
  const int64_t before = allocated_memory::bytes_of(p);
  void* const now = __libc_realloc(p, size);
  if (now || size == 0) allocated_memory::add(allocated_memory::bytes_of(now) - before);
  return now;
}
void* memalign(size_t alignment, size_t size) {
  return allocated_memory::counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** p, size_t alignment, size_t size) {
  *p = memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
void free(void* p) {
  allocated_memory::add(-allocated_memory::bytes_of(p));
  __libc_free(p);
}
}
