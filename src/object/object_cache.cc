#include "object/object_cache.h"

#include <new>
#include <utility>

namespace tenon {
namespace {

constinit thread_local ObjectCache* object_cache __attribute__((tls_model("initial-exec"))) =
    nullptr;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

}  // namespace

ObjectCache::Scope::Scope(ObjectCache* cache) : outer_(std::exchange(object_cache, cache)) {}

ObjectCache::Scope::~Scope() {
  object_cache = outer_;
}

void ObjectCache::clear() noexcept {
  for (Kept*& first : kept_) {
    while (Kept* memory = first) {
      first = memory->next;
      ::operator delete(memory);
    }
  }
}

void* new_memory(size_t bytes) {
  const size_t units = (bytes + ObjectCache::kUnit - 1) / ObjectCache::kUnit;
  if (ObjectCache* cache = object_cache; cache && units < ObjectCache::kClasses) {
    if (ObjectCache::Kept* memory = cache->kept_[units]) {
      cache->kept_[units] = memory->next;
      return memory;
    }
  }
  return ::operator new(units* ObjectCache::kUnit);
}

void delete_memory(void* memory, size_t bytes) noexcept {
  const size_t units = (bytes + ObjectCache::kUnit - 1) / ObjectCache::kUnit;
  if (ObjectCache* cache = object_cache; kKeeps && cache && units < ObjectCache::kClasses) {
    ObjectCache::Kept* const next = cache->kept_[units];
    const size_t count = next ? next->count + 1 : 1;
    if (count <= ObjectCache::kMostKept) {
      cache->kept_[units] = new (memory) ObjectCache::Kept{next, count};
      return;
    }
  }
  ::operator delete(memory);
}

}  // namespace tenon
