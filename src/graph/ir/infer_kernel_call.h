// The type of a call of a kernel.
#pragma once

#include "graph/ir/expr.h"
#include "loop/compute.h"

namespace tenon::graph {

// The result type of `call`, whose callee is `kernel`: its outputs, or the unit if the call passes
// destinations for them. Throws Usage without a span if the arguments don't match.
TypeRef infer_kernel_call(const Call& call, const loop::KernelInterface& kernel);

}  // namespace tenon::graph
