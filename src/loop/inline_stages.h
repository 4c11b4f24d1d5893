// Inlining of stages: graph fusion concatenates the stages of several operators, connected by their
// buffers; inlining leaves those that are worth a buffer.
#pragma once

#include "loop/compute.h"

namespace tenon::loop {

// Substitutes map stages into the stages that read them, where that does not repeat expensive work,
// and drops stages that nothing reads. Outputs stay stages. Inputs that nothing reads any more stay
// in `inputs`: they are the kernel's parameters. The result is a whole kernel.
ComputeRef inline_stages(const ComputeRef& compute);

}  // namespace tenon::loop
