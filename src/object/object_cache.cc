#include "object/object_cache.h"

#include <cstdint>
#include <new>

#include "support/thread_slot.h"

namespace tenon {
namespace {

constexpr size_t kUnit = 16;      // sizes are rounded up to a multiple of it
constexpr size_t kClasses = 17;   // up to 256 bytes; the first is unused
constexpr size_t kMostKept = 64;  // of each size

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

struct Kept {
  Kept* next;
  size_t count;  // of this one and those after it
};

struct Cache {
  Kept* first[kClasses] = {};
};

void clear(Cache* cache) {
  for (Kept*& first : cache->first) {
    while (Kept* const memory = first) {
      first = memory->next;
      ::operator delete(memory);
    }
  }
}
void drop(Cache* cache) {
  clear(cache);
  delete cache;
}
// Null before an object dies on the thread, and where there is no memory for it.
using ThreadCache = ThreadSlot<Cache, drop>;

[[gnu::cold, gnu::noinline]] Cache* make_cache() noexcept {
  ThreadCache::exchange(new (std::nothrow) Cache);
  return ThreadCache::get();
}

size_t units_of(size_t bytes) {
  return (bytes + kUnit - 1) / kUnit;
}

}  // namespace

void* new_memory(size_t bytes) {
  const size_t units = units_of(bytes);
  if (Cache* const cache = ThreadCache::get(); kKeeps && cache && units < kClasses) {
    if (Kept* const memory = cache->first[units]) {
      cache->first[units] = memory->next;
      return memory;
    }
  }
  return ::operator new(units* kUnit);
}

void delete_memory(void* memory, size_t bytes) noexcept {
  const size_t units = units_of(bytes);
  if (kKeeps && units < kClasses) {
    Cache* cache = ThreadCache::get();
    if (!cache) [[unlikely]]
      cache = make_cache();
    Kept* const next = cache ? cache->first[units] : nullptr;
    const size_t count = next ? next->count + 1 : 1;
    if (cache && count <= kMostKept) {
      cache->first[units] = new (memory) Kept{next, count};
      return;
    }
  }
  ::operator delete(memory);
}

void clear_object_cache() noexcept {
  if (Cache* const cache = ThreadCache::get()) clear(cache);
}

}  // namespace tenon
