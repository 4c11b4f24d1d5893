// Inlining of stages. Graph fusion concatenates the stages of several operators, connected by
// buffers; inlining keeps only the buffers that are worthwhile.
#pragma once

#include "loop/compute.h"

namespace tenon::loop {

// Substitutes map stages into the stages that read them, unless that repeats expensive work, and
// drops unused stages. Outputs remain stages. Unused inputs stay in `inputs`, since they are the
// kernel's parameters. The result is a whole kernel.
ComputeRef inline_stages(const ComputeRef& compute);

}  // namespace tenon::loop
