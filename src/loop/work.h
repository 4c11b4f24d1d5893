// Estimates how much work a kernel does before it runs, for limits on work.
#pragma once

#include "loop/dim.h"
#include "loop/kernel.h"

namespace tenon::loop {

// Estimates the work of a run of the kernel: the elements that it stores, including intermediate
// ones. Sizes that depend on outer loops are taken from the first iteration, and of two branches
// the longer one counts. `symbols` gives the kernel's symbols; an unknown size counts as 1.
double work_of(const Kernel& kernel, const DimEnv& symbols);

}  // namespace tenon::loop
