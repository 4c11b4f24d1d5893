// How much a kernel has to do, before it runs: for limits on work.
#pragma once

#include "loop/dim.h"
#include "loop/kernel.h"

namespace tenon::loop {

// An estimate of the elements that a run of the kernel stores, intermediate ones included: sizes
// that depend on outer loops are as in their first turn, and of two branches the longer one counts.
// `symbols` gives the kernel's symbols; a size that it doesn't know counts as 1.
double stores_of(const Kernel& kernel, const DimEnv& symbols);

}  // namespace tenon::loop
