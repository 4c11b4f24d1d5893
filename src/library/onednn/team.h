// oneDNN's threads: an OpenMP team for each thread that calls it.
//
// It is lent to the loops of Tenon's own kernels too. Idle threads spin for a while before they
// sleep, so two sets of threads would keep each other from the processors between a model's short
// layers.
#pragma once

#include <cstdint>

#include "device/parallel.h"

namespace tenon::onednn {

// For set_thread_team. Null under the thread sanitizer, which doesn't see how OpenMP's threads wait.
const ThreadTeam* lent_team();

// Tells OpenMP how many threads what oneDNN does next on this thread may use, and returns it: the
// thread's setting, all that the process may use without one, one where they were lost in a fork,
// and one for less work than is worth waking others for. (Nothing between one and all: OpenMP ends
// the threads by which a team shrinks.)
int32_t set_threads(double multiplications);

}  // namespace tenon::onednn
