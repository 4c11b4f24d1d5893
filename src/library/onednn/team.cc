#include "library/onednn/team.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "device/thread_pool.h"
#include "support/fork.h"

namespace tenon::onednn {

namespace {

// Work of one thread, roughly in nanoseconds of a current processor. On an idle machine, small
// networks gain nothing from threads below this; on a busy one, waiting for a thread that doesn't
// run takes ten times as long as the work.
constexpr double kWorthAThread = 8000;
constexpr double kMultiplicationsPerNs = 100;
constexpr double kBytesPerNs = 100;  // from the second cache

std::atomic<bool> started{false};
std::atomic<bool> lost{false};

// After a fork, the child doesn't have the team's threads, and OpenMP would wait for them forever.
// So the child's loops run on the process's pool, and primitives on the calling thread.
void note_start() {
  if (started.exchange(true)) return;
  in_forked_children([] { lost = true; });
}

// OpenMP ends the process if it can't create a thread, so this tries once how many can be created.
int32_t granted_threads() {
  static const int32_t granted = [] {
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    try {
      threads.reserve(static_cast<size_t>(available_threads()));
      while (static_cast<int32_t>(threads.size()) + 1 < available_threads()) {
        threads.emplace_back([&done] { done.wait(false); });
      }
    } catch (const std::system_error&) {
    }
    done = true;
    done.notify_all();
    for (std::thread& t : threads) t.join();
    return static_cast<int32_t>(threads.size()) + 1;
  }();
  return granted;
}

[[maybe_unused]] void run_on_team(void (*work)(void*, int32_t), void* context, int32_t threads) {
  if (lost.load(std::memory_order_relaxed)) return run_on_pool(work, context, threads);
  const int32_t team = threads > 1 ? usable_threads() : 1;
  if (team <= 1) return work(context, 0);
  note_start();
#pragma omp parallel num_threads(team)
  if (omp_get_thread_num() < threads) work(context, omp_get_thread_num());
}

}  // namespace

const ThreadTeam* lent_team() {
#ifdef __SANITIZE_THREAD__
  return nullptr;
#else
  static constexpr ThreadTeam team = {run_on_team, available_threads, true};
  return &team;
#endif
}

int32_t usable_threads() {
  if (lost.load(std::memory_order_relaxed)) return 1;
  const int32_t wanted = threads_in_scope();
  return wanted <= 1 ? 1 : std::min(wanted, granted_threads());
}

int32_t threads_worth(double multiplications, size_t weight_bytes) {
  const double work =
      multiplications / kMultiplicationsPerNs + static_cast<double>(weight_bytes) / kBytesPerNs;
  return work < kWorthAThread ? 1 : usable_threads();
}

TeamScope::TeamScope(int32_t threads) : before_(omp_get_max_threads()) {
  if (threads > 1) note_start();
  if (threads != before_) omp_set_num_threads(threads);
}

TeamScope::~TeamScope() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

}  // namespace tenon::onednn
