// A team that stays together for many short loops, such as those of each step of a recurrent
// network: its threads wait for the next loop instead of being called for each. Starting a loop
// then takes them the time of reading a changed cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tenon {

class StandingTeam {
 public:
  // For the leader, the one thread that runs loops, as ThreadTeam::run does. Threads that come
  // late, or never, leave their share of the work to the others.
  void lead(int32_t place) { place_ = place; }
  void run(void (*work)(void* context, int32_t place), void* context);

  // For the other threads: works in the leader's loops until it dismisses the team.
  void stand_by(int32_t place);
  void dismiss();  // by the leader; no loop follows

  // Counts a run of a loop with that body, from 0, and says whether its number is odd. Alternating
  // the direction in which a thread goes through its share lets it begin with what it read last,
  // which its cache still holds.
  bool next_run_is_odd(const void* body);

 private:
  static constexpr uint64_t kDismissed = UINT64_MAX;
  static constexpr size_t kBodies = 8;  // whose runs are counted

  void next_phase(uint64_t phase);
  uint64_t wait_beyond(uint64_t phase);

  // Odd while a loop runs. The fields below it are the leader's, who changes them in even phases,
  // when no thread is at work.
  alignas(64) std::atomic<uint64_t> phase_{0};
  void (*work_)(void*, int32_t) = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<int32_t> at_work_{0};
  std::atomic<int32_t> asleep_{0};

  int32_t place_ = 0;  // the leader's
  struct Runs {
    const void* body = nullptr;
    bool odd = false;
  };
  std::array<Runs, kBodies> runs_;
};

}  // namespace tenon
