// The error for a kernel's refusal, for every host of kernels.
#pragma once

#include "support/error.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// The arguments are those of KernelRuntime::raise.
Error kernel_error(const char* kernel, KernelError code, int32_t argument, int32_t axis,
                   int64_t found, int64_t expected);

}  // namespace tenon::vm
