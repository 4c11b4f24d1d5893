// oneDNN's threads: an OpenMP team for each thread that calls it.
//
// Tenon's own kernels use it too. Idle threads spin for a while before they sleep, so with two sets
// of threads, one would occupy the processors that the other needs between a model's short layers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/parallel.h"

namespace tenon::onednn {

// The team for set_thread_team. Null under the thread sanitizer, which doesn't understand OpenMP's
// synchronisation.
const ThreadTeam* lent_team();

// How many threads oneDNN may use on this thread now: the thread's setting, at most one per
// processor and as many as the system grants; one after a fork, which loses the threads.
int32_t usable_threads();
// The same, but 1 if the work isn't worth waking other threads: `multiplications` that read
// `weight_bytes` of weights.
int32_t threads_worth(double multiplications, size_t weight_bytes);

// Sets how many threads OpenMP uses on this thread; the destructor restores the host's setting. A
// team has either all usable threads or one, because OpenMP ends threads when a team shrinks.
class TeamScope {
 public:
  explicit TeamScope(int32_t threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;

 private:
  int before_;
};

}  // namespace tenon::onednn
