// The type of a call of a kernel.
#pragma once

#include "graph/ir/expr.h"
#include "loop/compute.h"

namespace tenon::graph {

// The result of `call`, whose callee is `kernel`: its outputs, or the unit where the call gives
// destinations for them. Throws Error (Usage) without a span where the arguments don't fit.
TypeRef infer_kernel_call(const Call& call, const loop::KernelInterface& kernel);

}  // namespace tenon::graph
