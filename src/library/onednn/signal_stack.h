// A stack for signal handlers on the threads that run oneDNN.
//
// While oneDNN 2.6's matrix products run, the stack pointer points into a small block of the heap.
// A signal handler that ran there would write beyond the block. Handlers that were installed with
// SA_ONSTACK, as Python's and the command's are, run on the thread's alternate stack, if it has
// one.
#pragma once

#include <cstdint>

namespace tenon::onednn {

// Gives this thread, and the others of its team of that many, an alternate stack unless it has one.
void ensure_signal_stacks(int32_t threads);

}  // namespace tenon::onednn
