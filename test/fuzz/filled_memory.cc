#include "filled_memory.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

constinit std::atomic<unsigned char> fill{0};

void* filled(void* memory) {
  if (memory) std::memset(memory, fill.load(std::memory_order_relaxed), malloc_usable_size(memory));
  return memory;
}

}  // namespace

void tenon::fuzz::fill_memory_with(unsigned char byte) {
  fill = byte;
}

extern "C" {
void* malloc(size_t size) {
  return filled(__libc_malloc(size));
}
void* calloc(size_t count, size_t size) {
  return __libc_calloc(count, size);
}
void* memalign(size_t alignment, size_t size) {
  return filled(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
void free(void* memory) {
  __libc_free(filled(memory));
}
// Moves the block, so that its old place is filled.
void* realloc(void* memory, size_t size) {
  if (!memory) return malloc(size);
  if (size == 0) {
    free(memory);
    return nullptr;
  }
  void* moved = malloc(size);
  if (!moved) return nullptr;
  const size_t had = malloc_usable_size(memory);
  std::memcpy(moved, memory, had < size ? had : size);
  free(memory);
  return moved;
}
}
