#include "library/onednn/team.h"

#include <omp.h>
#include <pthread.h>

#include <atomic>

#include "device/thread_pool.h"

namespace tenon::onednn {

namespace {

// Some microseconds of one thread: on a quiet machine small networks gain nothing below; on a busy
// one they wait ten times as long for a thread that doesn't run as the work takes.
constexpr double kWorthAThread = 1 << 18;

std::atomic<bool> started{false};
std::atomic<bool> lost{false};

// A fork leaves the child without the team's threads, and OpenMP would wait for them for ever: the
// child's loops run on the process's pool, and primitives on the thread that calls.
void note_start() {
  if (started.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { lost = true; });
}

[[maybe_unused]] void run_on_team(void (*work)(void*), void* context, int32_t threads) {
  if (lost.load(std::memory_order_relaxed)) return run_on_pool(work, context, threads);
  note_start();
#pragma omp parallel num_threads(threads)
  work(context);
}

}  // namespace

const ThreadTeam* lent_team() {
#ifdef __SANITIZE_THREAD__
  return nullptr;
#else
  static constexpr ThreadTeam team = {run_on_team, available_threads};
  return &team;
#endif
}

int32_t set_threads(double multiplications) {
  thread_local int32_t current = 0;
  int32_t wanted = threads_in_scope();
  if (multiplications < kWorthAThread || lost.load(std::memory_order_relaxed)) wanted = 1;
  if (wanted != current) {
    if (wanted > 1) note_start();
    omp_set_num_threads(wanted);
    current = wanted;
  }
  return wanted;
}

}  // namespace tenon::onednn
