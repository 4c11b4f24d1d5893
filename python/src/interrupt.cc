#include "python/src/interrupt.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

// The thread that has the main thread's call asked. It sleeps while there are no calls. Never
// destroyed, since its thread may outlive static objects.
class Watch {
 public:
  // Returns what was watched before.
  const tenon_any* begin(const tenon_any* callee) {
    const tenon_any* outer = callee_.exchange(callee);
    if (is_asleep_.load()) [[unlikely]]
      wake();
    return outer;
  }
  // Afterwards, the thread no longer uses the callee of the call that ends.
  void end(const tenon_any* outer) {
    callee_.store(outer);
    while (is_asking_.load()) std::this_thread::yield();
  }

 private:
  void wake() {
    const std::lock_guard lock(mutex_);
    if (!is_started_) {
      try {
        std::thread([this] { run(); }).detach();
      } catch (const std::exception&) {
        return;  // there are no more threads, or no memory: signals wait until the call's end
      }
      is_started_ = true;
    }
    is_asleep_ = false;
    woken_.notify_one();
  }

  [[noreturn]] void run() {
    constexpr auto kPeriod = std::chrono::milliseconds(20);
    constexpr int kIdlePeriods = 50;
    for (int idle = 0;;) {
      std::this_thread::sleep_for(kPeriod);
      is_asking_ = true;
      const tenon_any* callee = callee_.load();
      if (callee) tenon_host_check_request(callee);
      is_asking_ = false;
      idle = callee ? 0 : idle + 1;
      if (idle < kIdlePeriods) continue;
      std::unique_lock lock(mutex_);
      is_asleep_ = true;
      if (callee_.load()) is_asleep_ = false;  // it may have begun before it could see that
      woken_.wait(lock, [this] { return !is_asleep_.load(); });
      idle = 0;
    }
  }

  std::atomic<const tenon_any*> callee_{nullptr};  // of the main thread's innermost call
  std::atomic<bool> is_asking_{false};
  std::atomic<bool> is_asleep_{true};
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_started_ = false;
};
Watch* watch = nullptr;

// The host's check (tenon_host_check_set).
int run_signal_handlers() {
  if (!is_main_thread()) {
    if (!is_ending()) return 1;
    tenon_error_set(TENON_ERROR_RUNTIME, "the interpreter ended");
    return -1;
  }
  const WithGil acquired;
  if (!acquired) return 0;
  if (PyErr_CheckSignals() == 0) return 0;
  wait_with_raised();
  return -1;
}

}  // namespace

SignalWatch::SignalWatch(const tenon_any* machine_or_function)
    : is_of_main_thread_(is_main_thread()) {
  if (is_of_main_thread_) outer_ = watch->begin(machine_or_function);
}

SignalWatch::~SignalWatch() {
  if (is_of_main_thread_) watch->end(outer_);
}

void check_signals_while_computing() {
  watch = new Watch;
  // In a forked child, our thread doesn't exist.
  pthread_atfork(nullptr, nullptr, [] { watch = new Watch; });
  tenon_host_check_set(run_signal_handlers);
}

}  // namespace tenon::python
