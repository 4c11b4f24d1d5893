// The runtime's functions for kernels: the `self` of every kernel's entry.
#pragma once

#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// One constant table, alive for ever. Usable with and without a current machine: workspace counts
// for the current machine's memory limit.
const KernelRuntime& kernel_runtime();

}  // namespace tenon::vm
