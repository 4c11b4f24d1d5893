#include "device/cpu.h"

#include <cstdlib>
#include <cstring>

namespace tenon {

namespace {

int32_t count() {
  return 1;
}

void* allocate(int32_t, size_t bytes, size_t alignment) {
  if (alignment < kDataAlignment) alignment = kDataAlignment;
  size_t rounded;  // aligned_alloc requires a multiple of the alignment
  if (__builtin_add_overflow(bytes, alignment - 1, &rounded)) return nullptr;
  rounded &= ~(alignment - 1);
  return std::aligned_alloc(alignment, rounded ? rounded : alignment);
}

void free_memory(int32_t, void* memory, size_t) {
  std::free(memory);
}

int copy(int32_t, void* to, const void* from, size_t bytes) {
  if (bytes) std::memmove(to, from, bytes);
  return 0;
}

int synchronise(int32_t) {
  return 0;
}

constexpr DeviceTable kTable = {"cpu", count, allocate, free_memory, copy, synchronise};

}  // namespace

const DeviceTable& cpu_device_table() {
  return kTable;
}

}  // namespace tenon
