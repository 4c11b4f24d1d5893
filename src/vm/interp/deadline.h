// One timer thread per process sets the interrupt word of calls whose deadline has passed. It
// starts with the first deadline and sleeps while there is none.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tenon::vm {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  // Until this object dies, `*word` gets `bits` or-ed in once `when` has passed.
  Deadline(std::atomic<uint32_t>* word, uint32_t bits, Clock::time_point when);
  ~Deadline();
  Deadline(const Deadline&) = delete;

 private:
  uint64_t id_;
};

}  // namespace tenon::vm
