// Limits on loading a file, from its first byte to runnable code.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::vm {

struct LoadLimits {
  // Bytes that loading may allocate; 0 for no limit. A copy of the file counts, a mapping doesn't.
  size_t memory = 0;
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();  // from the start
  // Loading stops soon after this becomes true; any thread may set it.
  const std::atomic<bool>* cancel = nullptr;
};

// What is left of the limits while a file is loaded. Errors are Runtime and name the file.
class LoadBudget {
 public:
  // The deadline counts from here.
  LoadBudget(const LoadLimits& limits, std::string name);

  // Call before allocating.
  void allocate(size_t bytes) {
    allocated_ += bytes;
    if (allocated_ > most_) out_of_memory();
  }
  // Call after each piece of work of less than a few microseconds.
  void poll() {
    if (++polls_ % 1024 == 0) check();
  }
  // Call after a longer one.
  void check() const;

  size_t allocated() const { return allocated_; }

 private:
  using Clock = std::chrono::steady_clock;
  [[noreturn]] void out_of_memory() const;

  LoadLimits limits_;
  std::string name_;
  Clock::time_point end_;
  size_t most_, allocated_ = 0;
  uint32_t polls_ = 0;
};

}  // namespace tenon::vm
