// ThreadSlot: one pointer per thread and tag, released when the thread ends.
//
// A thread_local object with a destructor allocates on its thread's first use, and ends the process
// if that fails. This allocates nothing, so that it works when memory has just run out.
#pragma once

#include <pthread.h>

#include <utility>

namespace tenon {

template <class T, void (*kDrop)(T*)>
class ThreadSlot {
 public:
  static T* get() noexcept { return value; }
  // Puts `next` into this thread's slot and returns the previous pointer, which the caller owns.
  static T* exchange(T* next) noexcept {
    if (next && !is_dropped_at_exit) {
      // If there is no memory for the key's value, the pointer leaks when the thread ends.
      static const Key key;
      is_dropped_at_exit = key.made && pthread_setspecific(key.key, &value) == 0;
    }
    return std::exchange(value, next);
  }

 private:
  struct Key {
    pthread_key_t key{};
    bool made = pthread_key_create(&key, [](void*) {
                  is_dropped_at_exit = false;
                  if (T* left = std::exchange(value, nullptr)) kDrop(left);
                }) == 0;
  };
  static inline constinit thread_local T* value __attribute__((tls_model("initial-exec"))) =
      nullptr;
  static inline constinit thread_local bool is_dropped_at_exit
      __attribute__((tls_model("initial-exec"))) = false;
};

}  // namespace tenon
