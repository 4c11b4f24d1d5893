#include "device/standing_team.h"

#include <thread>

#include "device/relax.h"

namespace tenon {

void StandingTeam::next_phase(uint64_t phase) {
  phase_.store(phase, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst) > 0) phase_.notify_all();
}

void StandingTeam::run(void (*work)(void*, int32_t), void* context) {
  const uint64_t phase = phase_.load(std::memory_order_relaxed);
  work_ = work;
  context_ = context;
  next_phase(phase + 1);
  work(context, place_);
  // A thread says that it is at work and then looks at the phase; the leader changes the phase and
  // then looks who is at work. So it doesn't miss one that joins.
  phase_.store(phase + 2, std::memory_order_seq_cst);
  for (int spins = 0; at_work_.load(std::memory_order_seq_cst) != 0; ++spins) {
    if (spins < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
}

void StandingTeam::dismiss() {
  next_phase(kDismissed);
}

// Returns the phase, once it is another one.
uint64_t StandingTeam::wait_beyond(uint64_t phase) {
  for (int i = 0; i < kSpins; ++i) {
    const uint64_t now = phase_.load(std::memory_order_acquire);
    if (now != phase) return now;
    relax();
  }
  asleep_.fetch_add(1, std::memory_order_seq_cst);
  phase_.wait(phase, std::memory_order_seq_cst);
  asleep_.fetch_sub(1, std::memory_order_relaxed);
  return phase_.load(std::memory_order_acquire);
}

void StandingTeam::stand_by(int32_t place) {
  uint64_t phase = 0;
  while ((phase = wait_beyond(phase)) != kDismissed) {
    if (phase % 2 == 0) continue;
    at_work_.fetch_add(1, std::memory_order_seq_cst);
    if (phase_.load(std::memory_order_seq_cst) == phase) work_(context_, place);
    at_work_.fetch_sub(1, std::memory_order_release);
  }
}

bool StandingTeam::next_run_is_odd(const void* body) {
  for (Runs& runs : runs_) {
    if (!runs.body) runs = {body, true};
    if (runs.body == body) return runs.odd = !runs.odd;
  }
  return false;
}

}  // namespace tenon
