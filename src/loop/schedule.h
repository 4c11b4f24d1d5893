// Schedules: from what is computed (a Compute) to in which order (a Kernel).
#pragma once

#include <string_view>

#include "loop/kernel.h"
#include "loop/tiling.h"

namespace tenon::loop {

struct ScheduleOptions {
  // 0: plain loops in the order of the stages, each stage in scratch of its own; the oracle.
  // 1: the schedules that fit the shape of the Compute.
  int level = 1;
  TargetFacts target;
  ChooseTiling tiling = tabled_tiling;
};

// The one way from a Compute to a loop nest. The kernel has the interface of `compute`, which is a
// whole kernel (whole_kernel). Accesses are trusted as far as the compute's are (`in_bounds`).
KernelRef lower(const Compute& compute, std::string_view name, const ScheduleOptions& options);

// The loop nest of either kind of kernel: a Compute is lowered, a loop nest kept as it is; under
// `name`.
KernelRef loop_nest(const KernelInterfaceRef& kernel, std::string_view name,
                    const ScheduleOptions& options);

}  // namespace tenon::loop
