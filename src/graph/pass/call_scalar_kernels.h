// call_scalar_kernels: the machine's instructions compute with numbers, but have no elementary
// functions. A call of one on scalars (a power, exp, sin ...) becomes one on tensors of rank 0,
// which a kernel computes, so that every mode uses the same approximation.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module call_scalar_kernels(const Module& module, PassContext& cx);

}  // namespace tenon::graph
