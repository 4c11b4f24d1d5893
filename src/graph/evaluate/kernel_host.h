// The runtime that kernels see while the compiler runs them: this process's threads and heap.
#pragma once

#include "vm/executable/kernel_abi.h"

namespace tenon::graph {

const vm::KernelRuntime& kernel_host();

}  // namespace tenon::graph
