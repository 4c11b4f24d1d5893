// oneDNN's threads: an OpenMP team for each thread that calls it.
//
// It is lent to the loops of Tenon's own kernels too. Idle threads spin for a while before they
// sleep, so two sets of threads would keep each other from the processors between a model's short
// layers.
#pragma once

#include <cstdint>

#include "device/parallel.h"

namespace tenon::onednn {

// For set_thread_team. Null under the thread sanitizer, which doesn't see how OpenMP's threads
// wait.
const ThreadTeam* lent_team();

// Threads that oneDNN may use on this thread now: the thread's setting, at most one for each
// processor and as many as the system grants; one where they were lost in a fork.
int32_t usable_threads();
// Those, or one for less work than is worth waking others for.
int32_t threads_worth(double multiplications);

// How many threads OpenMP uses on this thread, as long as it lives: this many; then what the host
// had set. A team is all usable threads or one alone: OpenMP ends the threads by which it shrinks.
class TeamScope {
 public:
  explicit TeamScope(int32_t threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;

 private:
  int before_;
};

}  // namespace tenon::onednn
