// Errors across the border: Tenon's become exceptions of tenon.Error's subclasses, with their parts
// as attributes; an exception that a Python callback raised comes out of the outermost call as
// itself.
#pragma once

#include "python/src/nanobind.h"

namespace tenon::python {

// Raises this thread's waiting error as a Python exception.
[[noreturn]] void raise_waiting();
inline void check(int code) {
  if (code != 0) [[unlikely]]
    raise_waiting();
}

// Makes the exception being handled in a catch block Python's.
void raise_current() noexcept;

// Makes Python's exception this thread's waiting error, in a callback that is about to return -1.
// It is kept, and raise_waiting raises it again with the machine's frames as a note.
void wait_with_raised() noexcept;

}  // namespace tenon::python
