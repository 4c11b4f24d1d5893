// The remaining native stack of this thread, for recursive code.
#pragma once

#include <cstddef>

namespace tenon {

// Bytes from here to the end of this thread's stack. SIZE_MAX if unknown: on a stack that isn't the
// thread's own (a coroutine's, a signal handler's).
size_t native_stack_left() noexcept;

}  // namespace tenon
