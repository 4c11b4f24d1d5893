// Native kernels have no sanitizer checks. Linked into a program with --wrap=aligned_alloc and
// --wrap=free, this allocates the memory of tensors in separate pages: a block ends at the end of a
// page (as far as its alignment allows), and pages around it and those of freed blocks are
// inaccessible. A kernel that accesses memory outside its arguments, or freed memory, ends the
// program.
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kArena = size_t{1} << 36;  // address space; freed blocks are reused after a round

class Guarded {
 public:
  static Guarded& global() {
    static auto* g = new Guarded;
    return *g;
  }

  bool holds(const void* p) const {
    return p >= begin_ && static_cast<const char*>(p) < begin_ + kArena;
  }

  void* allocate(size_t alignment, size_t size) {
    if (size > kArena / 4 || alignment > kPage) return nullptr;
    const size_t pages = (size + kPage - 1) / kPage * kPage;
    std::lock_guard lock(mutex_);
    char* start = find(pages);
    if (!start || mprotect(start, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
    live_[start] = pages;
    next_ = start + pages + kPage;
    return start + (pages - size) / alignment * alignment;
  }

  void free(void* memory) {
    std::lock_guard lock(mutex_);
    auto block = live_.upper_bound(static_cast<char*>(memory));
    if (block == live_.begin() || static_cast<char*>(memory) >= (--block)->first + block->second) {
      std::fprintf(stderr, "finding: free of memory that is not allocated\n");
      std::abort();
    }
    // Mapped again, so that the memory is returned to the system.
    mmap(block->first, block->second, PROT_NONE, kFlags | MAP_FIXED, -1, 0);
    live_.erase(block);
  }

 private:
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  Guarded() {
    void* arena = mmap(nullptr, kArena, PROT_NONE, kFlags, -1, 0);
    if (arena == MAP_FAILED) std::abort();
    begin_ = next_ = static_cast<char*>(arena);
  }

  // The next `pages` bytes without a live block, including a guard page before and after them.
  char* find(size_t pages) {
    for (int round = 0; round < 2; ++round, next_ = begin_) {
      char* at = next_ + kPage;
      for (auto block = live_.lower_bound(at - kPage);; ++block) {
        char* end = block == live_.end() ? begin_ + kArena : block->first;
        if (at + pages + kPage <= end) return at;
        if (block == live_.end()) break;
        at = block->first + block->second + kPage;
      }
    }
    return nullptr;
  }

  char* begin_;
  char* next_;
  std::map<char*, size_t> live_;
  std::mutex mutex_;
};

}  // namespace

extern "C" {
void __real_free(void* memory);

void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  return Guarded::global().allocate(alignment, size);
}

void __wrap_free(void* memory) {
  if (memory && Guarded::global().holds(memory)) {
    Guarded::global().free(memory);
  } else {
    __real_free(memory);
  }
}
}
