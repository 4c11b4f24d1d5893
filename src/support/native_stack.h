// What is left of the thread's native stack, for what recurses on it.
#pragma once

#include <cstddef>

namespace tenon {

// Bytes between here and the end of this thread's stack; SIZE_MAX where it can't be told: on a
// stack that isn't the thread's own (a coroutine's, a signal's).
size_t native_stack_left() noexcept;

}  // namespace tenon
