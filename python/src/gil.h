// The GIL at the interpreter's end.
//
// CPython before 3.14 ends a daemon thread that wants the GIL while the interpreter ends: with
// pthread_exit, which unwinds the stack from within any function of its C interface that runs code
// in Python or takes the GIL. On the way, destructors would drop references without the GIL, and a
// function that is noexcept, such as each that Python calls, would abort the process. So every
// such function that this module calls is wrapped (gil.cc) and stops the thread for good, which is
// what Python 3.14 does itself. Guards of nanobind are safe, too, since they call these functions.
#pragma once

#include <optional>

#include "python/src/nanobind.h"

namespace tenon::python {

// Called once, with the GIL, when the module is imported.
void watch_for_end();
// Whether the interpreter ends, or has ended.
bool is_ending();
// Whether this is Python's main thread, which is also the one that ends the interpreter.
bool is_main_thread();

// Takes the GIL on any thread, for what the runtime calls or releases. False, and without the GIL,
// after the interpreter's end; on threads but the main one, already while it ends.
class WithGil {
 public:
  WithGil();
  explicit operator bool() const { return had_ || (acquired_ && acquired_->is_valid()); }

 private:
  const bool had_;  // before; taking it once more takes longer than finding out
  std::optional<nanobind::gil_scoped_acquire> acquired_;
};

// Releases the GIL for a compilation or for loading. These use global objects of LLVM, which the
// end of the process destroys; so it waits for them, and the host's check (interrupt.cc) stops
// them.
class CompilingWithoutGil {
 public:
  CompilingWithoutGil();
  ~CompilingWithoutGil();
  CompilingWithoutGil(const CompilingWithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace tenon::python
