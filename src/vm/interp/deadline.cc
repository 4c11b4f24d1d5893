#include "vm/interp/deadline.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "support/fork.h"

namespace tenon::vm {

class Deadline::Timer {
 public:
  static Timer& instance() {
    Timer* timer = instance_.load(std::memory_order_acquire);
    return timer ? *timer : make();
  }
  static bool is_current(const Timer* timer) {
    return instance_.load(std::memory_order_acquire) == timer;
  }

  Key add(std::atomic<uint32_t>* word, uint32_t bits, Clock::time_point when) {
    std::lock_guard lock(mutex_);
    if (!started_) start();
    Key key{when, next_id_++};
    entries_.insert({key, {word, bits}});
    if (when < wakes_at_) changed_.notify_one();
    return key;
  }

  // Afterwards the word isn't touched any more.
  void remove(const Key& key) {
    std::lock_guard lock(mutex_);
    entries_.erase(key);
  }

 private:
  // A struct, whose name is shorter than a lambda's: a thread keeps it as text.
  struct Running {
    Timer* timer;
    void operator()() const { timer->run(); }
  };
  void start() {
    std::thread(Running{this}).detach();
    started_ = true;
  }
  struct Entry {
    std::atomic<uint32_t>* word;
    uint32_t bits;
  };

  static Timer& make() {
    static std::mutex making;
    std::lock_guard lock(making);
    Timer* timer = instance_.load();
    if (!timer) {
      // After a fork the child doesn't have the thread, and the mutex may be locked for ever: it
      // leaks this timer and starts with a new one.
      static const bool registered = in_forked_children([] { instance_.store(nullptr); });
      (void)registered;
      timer = new Timer;  // never destroyed: its thread may outlive static destruction
      instance_.store(timer, std::memory_order_release);
    }
    return *timer;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (entries_.empty()) {
        wakes_at_ = Clock::time_point::max();
        changed_.wait(lock);
        continue;
      }
      auto first = entries_.begin();
      Clock::time_point when = first->first.first;
      if (when > Clock::now()) {
        // If the entry is removed meanwhile, this wakes up needlessly, which is cheaper than waking
        // the thread for every call.
        wakes_at_ = when;
        changed_.wait_until(lock, when);
        continue;
      }
      first->second.word->fetch_or(first->second.bits, std::memory_order_relaxed);
      entries_.erase(first);
    }
  }

  static constinit std::atomic<Timer*> instance_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Entry> entries_;
  Clock::time_point wakes_at_ = Clock::time_point::max();
  uint64_t next_id_ = 1;
  bool started_ = false;
};
constinit std::atomic<Deadline::Timer*> Deadline::Timer::instance_{nullptr};

Deadline::Deadline(std::atomic<uint32_t>* word, uint32_t bits, Clock::time_point when)
    : timer_(&Timer::instance()), key_(timer_->add(word, bits, when)) {}

Deadline::~Deadline() {
  if (Timer::is_current(timer_)) timer_->remove(key_);
}

}  // namespace tenon::vm
