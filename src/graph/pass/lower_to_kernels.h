// lower_to_kernels: each primitive function becomes a kernel, each call of one a call of its
// kernel.
//
// The lowerings of a function's operators are joined into one Compute, which is the kernel: loops
// are made of it per target, after all passes (loop/schedule.h). Symbols are renamed in the order
// of their first appearance, so that primitive functions that differ in names alone share a kernel.
// Symbols that no parameter's dimension binds travel as integers: the call's attribute "integers"
// holds their values.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module lower_to_kernels(const Module& module, PassContext& cx);

}  // namespace tenon::graph
