// The process's threads. Started when a loop first needs them, shared by all machines; an idle one
// spins for some microseconds and then sleeps.
#pragma once

#include "device/parallel.h"

namespace tenon {

// The default of ParallelTable::run.
int run_on_pool(const ParallelLoop* loop);
// Threads that have been started, without callers; for tests.
int32_t pool_size();

}  // namespace tenon
