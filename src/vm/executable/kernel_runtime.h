// The runtime's functions for kernels: the `self` of every kernel entry.
#pragma once

#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// One constant table, never destroyed. Usable inside and outside of a call: workspace counts for
// the memory limit of the thread's call.
const KernelRuntime& kernel_runtime();

}  // namespace tenon::vm
