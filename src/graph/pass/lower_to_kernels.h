// lower_to_kernels: turns primitive functions into kernels and their calls into kernel calls.
//
// The lowerings of a function's operators are joined into one Compute, which is the kernel; it
// becomes loops per target, after all passes (loop/schedule.h). Symbols are renamed in the order of
// their first appearance, so that primitive functions that differ only in names share a kernel.
// Symbols that no parameter's dimension binds are passed as integers: the call's attribute
// "integers" holds their values.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module lower_to_kernels(const Module& module, PassContext& cx);

}  // namespace tenon::graph
