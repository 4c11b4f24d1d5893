// Polling: how work that takes long finds out that it is to stop. Whoever runs work under a
// deadline, or may cancel it, makes a Poller the thread's current one; the work calls `poll` at
// least every few milliseconds, which throws once it is to stop.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tenon {

class Poller {
 public:
  // Throws when the work is to stop. Called by any thread that helps with it.
  virtual void poll() = 0;

  // Of this thread; null when nothing can stop its work.
  static Poller* current();

  // Makes a poller the thread's current one while it lives; null for none.
  class Scope {
   public:
    explicit Scope(Poller* poller);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Poller* outer_;
  };

 protected:
  ~Poller() = default;
};

// Throws when this thread's work is to stop. It costs about as much as reading the clock.
void poll();

// When work that begins now and may take so long is to stop; never, for a year or more.
std::chrono::steady_clock::time_point deadline_from_now(std::chrono::nanoseconds duration);

// How many bytes to copy, hash, read or write between two polls: they take a few milliseconds.
inline constexpr size_t kPollBytes = size_t{8} << 20;

// Polls now and then: for inner loops, each step a subtraction.
class Ticker {
 public:
  void tick() { take(1); }
  // A step that copies so many bytes; more than a few megabytes are better copied in parts
  // (support/bulk.h).
  void tick(size_t bytes) { take(1 + static_cast<int64_t>(bytes / kBytesPerStep)); }

 private:
  void take(int64_t steps) {
    if ((left_ -= steps) <= 0) [[unlikely]]
      ask();
  }
  void ask();
  static constexpr int64_t kSteps = 4096;
  static constexpr size_t kBytesPerStep = 512;
  int64_t left_ = kSteps;
};

}  // namespace tenon
