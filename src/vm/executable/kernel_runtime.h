// The runtime's functions for kernels: the `self` of every kernel's entry.
#pragma once

#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// One constant table, alive for ever. Usable within a call and without one: workspace counts for
// the memory limit of the call that the thread works for.
const KernelRuntime& kernel_runtime();

}  // namespace tenon::vm
