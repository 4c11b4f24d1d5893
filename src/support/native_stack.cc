#include "support/native_stack.h"

#include <pthread.h>

#include <cstdint>

namespace tenon {
namespace {

struct Bounds {
  uintptr_t begin = 0, end = 0;  // it grows down from `end`
  bool asked = false;
};
constinit thread_local Bounds bounds;

void ask() noexcept {
  bounds.asked = true;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* begin = nullptr;
  size_t size = 0, guard = 0;
  if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
    (void)pthread_attr_getguardsize(&attributes, &guard);
    bounds.begin = reinterpret_cast<uintptr_t>(begin) + guard;
    bounds.end = reinterpret_cast<uintptr_t>(begin) + size;
  }
  pthread_attr_destroy(&attributes);
}

}  // namespace

size_t native_stack_left() noexcept {
  if (!bounds.asked) ask();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > bounds.begin && here < bounds.end ? here - bounds.begin : SIZE_MAX;
}

}  // namespace tenon
