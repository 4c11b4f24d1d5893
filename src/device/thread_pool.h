// The process's thread pool. Threads start when a loop first needs them and are shared by all
// machines; an idle thread spins for some microseconds and then sleeps.
#pragma once

#include <cstdint>

namespace tenon {

// The default ThreadTeam::run.
void run_on_pool(void (*work)(void* context, int32_t place), void* context, int32_t threads);
// The number of threads started, excluding callers; for tests.
int32_t pool_size();

}  // namespace tenon
