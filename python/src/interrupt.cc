#include "python/src/interrupt.h"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "python/src/error.h"

namespace tenon::python {
namespace {

namespace nb = nanobind;

pthread_t main_thread;

bool is_main_thread() {
  return pthread_equal(pthread_self(), main_thread);
}

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
      } catch (const std::system_error&) {
        return;  // the system has no more threads: signals wait until the call's end
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
  if (!is_main_thread()) return 1;
  if (!Py_IsInitialized()) return 0;
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() == 0) return 0;
  nb::python_error raised;
  wait_with(raised);
  return -1;
}

}  // namespace

AskedForSignals::AskedForSignals(const tenon_any* machine_or_function)
    : is_of_main_thread_(is_main_thread()) {
  if (is_of_main_thread_) outer_ = watch->begin(machine_or_function);
}

AskedForSignals::~AskedForSignals() {
  if (is_of_main_thread_) watch->end(outer_);
}

void check_signals_while_computing() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = static_cast<pthread_t>(nb::cast<uintptr_t>(main.attr("ident")));
  watch = new Watch;
  // In a forked child, the thread that forked is the main one, and ours doesn't exist.
  pthread_atfork(nullptr, nullptr, [] {
    main_thread = pthread_self();
    watch = new Watch;
  });
  tenon_host_check_set(run_signal_handlers);
}

}  // namespace tenon::python
