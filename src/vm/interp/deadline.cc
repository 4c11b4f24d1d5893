#include "vm/interp/deadline.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace tenon::vm {
namespace {

class Timer {
 public:
  // Never destroyed: its thread may outlive static destruction.
  static Timer& instance() {
    static Timer* timer = new Timer;
    return *timer;
  }

  uint64_t add(std::atomic<uint32_t>* word, uint32_t bits, Deadline::Clock::time_point when) {
    std::lock_guard lock(mutex_);
    if (!started_) {
      std::thread([this] { run(); }).detach();
      started_ = true;
    }
    uint64_t id = next_id_++;
    auto at = entries_.insert({when, {id, word, bits}});
    places_[id] = at;
    if (when < wakes_at_) changed_.notify_one();
    return id;
  }

  // After this the word isn't touched any more.
  void remove(uint64_t id) {
    std::lock_guard lock(mutex_);
    auto place = places_.find(id);
    if (place == places_.end()) return;
    entries_.erase(place->second);
    places_.erase(place);
  }

 private:
  struct Entry {
    uint64_t id;
    std::atomic<uint32_t>* word;
    uint32_t bits;
  };

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (entries_.empty()) {
        wakes_at_ = Deadline::Clock::time_point::max();
        changed_.wait(lock);
        continue;
      }
      auto first = entries_.begin();
      if (first->first > Deadline::Clock::now()) {
        // The entry may go while this waits: then it wakes for nothing, which costs less than a
        // wake-up for each call.
        wakes_at_ = first->first;
        auto when = wakes_at_;
        changed_.wait_until(lock, when);
        continue;
      }
      first->second.word->fetch_or(first->second.bits, std::memory_order_relaxed);
      places_.erase(first->second.id);
      entries_.erase(first);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Deadline::Clock::time_point, Entry> entries_;
  std::unordered_map<uint64_t, std::multimap<Deadline::Clock::time_point, Entry>::iterator> places_;
  Deadline::Clock::time_point wakes_at_ = Deadline::Clock::time_point::max();
  uint64_t next_id_ = 1;
  bool started_ = false;
};

}  // namespace

Deadline::Deadline(std::atomic<uint32_t>* word, uint32_t bits, Clock::time_point when)
    : id_(Timer::instance().add(word, bits, when)) {}

Deadline::~Deadline() {
  Timer::instance().remove(id_);
}

}  // namespace tenon::vm
