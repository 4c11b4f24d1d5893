// Scratch<T>: a vector for a function's workspace, which counts for the memory limit of the running
// call. Elements constructed without a value are uninitialised, since clearing gigabytes that are
// about to be overwritten would take long.
#pragma once

#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/call_context.h"

namespace tenon {

template <class T>
class ScratchAllocator {
 public:
  using value_type = T;
  // Memory is returned to the call that it came from.
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  ScratchAllocator() : context_(CallContext::current()) {}
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>& other) : context_(other.context()) {}

  T* allocate(size_t n) {
    if (n > std::numeric_limits<size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
    size_t bytes = n * sizeof(T);
    if (context_ && !context_->count_memory(bytes)) context_->fail_memory(bytes);
    try {
      return std::allocator<T>().allocate(n);
    } catch (...) {
      if (context_) context_->discount_memory(bytes);
      throw;
    }
  }
  void deallocate(T* memory, size_t n) {
    std::allocator<T>().deallocate(memory, n);
    if (context_) context_->discount_memory(n * sizeof(T));
  }

  template <class U>
  void construct(U* element) noexcept(std::is_nothrow_default_constructible_v<U>) {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U, class... Args>
  void construct(U* element, Args&&... args) {
    ::new (static_cast<void*>(element)) U(std::forward<Args>(args)...);
  }

  CallContext* context() const { return context_; }
  template <class U>
  bool operator==(const ScratchAllocator<U>& other) const {
    return context_ == other.context();
  }

 private:
  CallContext* context_;
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace tenon
