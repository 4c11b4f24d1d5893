// Loops that read a large array once, such as a row times a matrix of weights. Their direction
// alternates between calls of the kernel: a call begins with what the one before has read last,
// which is still in the second-level cache. Always in the same order, an array that is larger than
// the cache would lose its beginning to its end.
#pragma once

#include "loop/kernel.h"

namespace tenon::loop {

// Whether the iterations of a parallel loop, which may run in any order, read a large array of the
// kernel's piece by piece, and write little. None may fail, so that the failure that a kernel
// reports doesn't depend on earlier calls.
bool is_sweep(const Kernel& kernel, const For& loop);

}  // namespace tenon::loop
