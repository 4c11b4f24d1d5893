// One timer thread per process sets the interrupt word of calls whose deadline has passed. It
// starts with the first deadline and sleeps while there is none. A forked child has its own timer;
// a call that itself forks continues in the child without its deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

namespace tenon::vm {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  // While this object lives, `bits` are or-ed into `*word` once `when` has passed.
  Deadline(std::atomic<uint32_t>* word, uint32_t bits, Clock::time_point when);
  ~Deadline();
  Deadline(const Deadline&) = delete;

 private:
  class Timer;
  using Key = std::pair<Clock::time_point, uint64_t>;

  Timer* timer_;
  Key key_;
};

}  // namespace tenon::vm
