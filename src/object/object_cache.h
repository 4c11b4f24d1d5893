// ObjectCache: keeps the memory of small objects that died, for the next ones of their size.
//
// While a cache is in force on a thread, objects that die there leave their memory to it and new
// ones take theirs from it: in a steady state, code that makes and drops objects asks the system
// for nothing. What it keeps counts for no budget. It isn't used under AddressSanitizer, which then
// sees each object's end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

class ObjectCache {
 public:
  ObjectCache() = default;
  ~ObjectCache() { clear(); }
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  // In force on this thread while it lives, replacing an outer one. The cache serves one thread at
  // a time.
  class Scope {
   public:
    explicit Scope(ObjectCache* cache);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ObjectCache* outer_;
  };

  // Frees what is kept.
  void clear() noexcept;

 private:
  friend void* new_memory(size_t bytes);
  friend void delete_memory(void* memory, size_t bytes) noexcept;

  struct Kept {
    Kept* next;
    size_t count;  // of this one and those after it
  };
  static constexpr size_t kUnit = 16;      // sizes are rounded up to a multiple of it
  static constexpr size_t kClasses = 17;   // up to 256 bytes; the first is unused
  static constexpr size_t kMostKept = 64;  // of each size
  Kept* kept_[kClasses] = {};
};

// Memory for an object of at most PTRDIFF_MAX bytes, and its return with the same size; both by the
// thread's cache.
void* new_memory(size_t bytes);
void delete_memory(void* memory, size_t bytes) noexcept;

}  // namespace tenon
