// Lowering of primitive functions: calls of operators, of which each has a Compute, to one kernel.
#pragma once

#include "graph/ir/module.h"
#include "loop/schedule.h"

namespace tenon::graph {

// The kernel of `primitive`: its inputs are the parameters in order, its outputs the result or the
// fields of a tuple. Symbols keep their names; constants of one element become literals. The joined
// Compute is simplified (loop::inline_stages) and scheduled.
loop::KernelRef lower_primitive(const FunctionRef& primitive, const loop::ScheduleOptions& options);

}  // namespace tenon::graph
