// What happens in the child of a fork, which has none of the process's other threads.
#pragma once

#include <pthread.h>

#ifdef __GLIBC__
// pthread_atfork is this call in a static function of every library that uses it. That is the only
// code in the runtime that would need a procedure linkage table.
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                 void* library) noexcept;
extern "C" [[gnu::visibility("hidden")]] void* __dso_handle;
#endif

namespace tenon {

// Calls `reset` in the child of every later fork, on its only thread, until this library is
// unloaded. False without memory for that: children don't call it then.
inline bool in_forked_children(void (*reset)()) {
#ifdef __GLIBC__
  return __register_atfork(nullptr, nullptr, reset, __dso_handle) == 0;
#else
  return pthread_atfork(nullptr, nullptr, reset) == 0;
#endif
}

}  // namespace tenon
