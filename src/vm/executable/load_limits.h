// What loading a file may use, from its first byte to the code that runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::vm {

struct LoadLimits {
  // Of memory that loading allocates; 0 for no cap. A file that is mapped doesn't count, a copy
  // does.
  size_t memory = 0;
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();  // from its start
  // Loading stops soon after this has become true; any thread may set it.
  const std::atomic<bool>* cancel = nullptr;
};

// What is left of the limits while a file is loaded. Errors are Runtime and name the file.
class LoadBudget {
 public:
  // The time begins.
  LoadBudget(const LoadLimits& limits, std::string name);

  // Before that much is allocated.
  void allocate(size_t bytes) {
    allocated_ += bytes;
    if (allocated_ > most_) out_of_memory();
  }
  // After each piece of work of less than a few microseconds.
  void poll() {
    if (++polls_ % 1024 == 0) check();
  }
  // After a longer one.
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
