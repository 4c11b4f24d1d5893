// Errors of native code: for a kernel's refusal, for every host of kernels, and for another ABI.
#pragma once

#include <string_view>

#include "support/error.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// The arguments are those of KernelRuntime::raise.
Error kernel_error(const char* kernel, KernelError code, int32_t argument, int32_t axis,
                   int64_t found, int64_t expected);

// An Unsupported error: the file `name` has `what`, but of version `found` of its ABI.
Error abi_error(std::string_view name, const char* what, uint32_t found, uint32_t expected);

}  // namespace tenon::vm
