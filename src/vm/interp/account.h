// Account: what calls run on. It holds their limits, and lets whoever made it stop them.
//
// A machine has one. Function values made by its programs carry it, so that a call of one is held
// to the limits under which it was made, on whatever machine and thread it runs, and
// Machine::cancel stops it. A call within another call draws on the outer one besides: it gets no
// more than what is left there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "object/object.h"

namespace tenon::vm {

// What one call from the host may use. A nested call shares what is left of the outer one's.
struct Limits {
  // A unit per function entry and per taken backward jump.
  int64_t fuel = std::numeric_limits<int64_t>::max();
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();  // from the call's start
  // Stack, storage from the machine's pools, objects, and what packed functions and kernels need
  // for their work; 0 for no cap.
  size_t memory = 0;
  uint32_t depth = 1 << 20;                // frames
  size_t stack_bytes = size_t{256} << 20;  // of registers; address space, not memory
  int32_t threads = 0;                     // for parallel loops; 0 for all that there are

  bool operator==(const Limits&) const = default;
};

// The calls of an account that run away from the machine which the account belongs to. Any thread.
class RunningCalls : public Object {
 public:
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Enters a call, known by the word that tells it to stop, for as long as this object lives.
  class Entry {
   public:
    Entry(Ref<RunningCalls> calls, std::atomic<uint32_t>* word);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class RunningCalls;
    Ref<RunningCalls> calls_;
    std::atomic<uint32_t>* word_;
    Entry* next_;
    Entry** link_;
  };

  // Sets `bits` in the word of every call; whether there is any.
  bool interrupt(uint32_t bits);

 private:
  std::mutex mutex_;
  Entry* first_ = nullptr;
};

struct Account : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  static constexpr int32_t kTypeLast = kTypeIndex;

  Limits limits;
  Ref<RunningCalls> calls;  // never null

  Account(const Limits& l, Ref<RunningCalls> c) : limits(l), calls(std::move(c)) {}
  static Ref<Account> of(const Limits& limits);  // with calls of its own

  // An account that allows what both allow: `inner` where it allows no more than `outer`, `outer`
  // where that allows less, else a new one with the calls of `inner`.
  static Ref<Account> stricter(const Ref<Account>& outer, const Ref<Account>& inner);
};

}  // namespace tenon::vm
