// The process's threads. Started when a loop first needs them, shared by all machines; an idle one
// spins for some microseconds and then sleeps.
#pragma once

#include <cstdint>

namespace tenon {

// The default of ThreadTeam::run.
void run_on_pool(void (*work)(void* context, int32_t place), void* context, int32_t threads);
// Threads that have been started, without callers; for tests.
int32_t pool_size();

}  // namespace tenon
