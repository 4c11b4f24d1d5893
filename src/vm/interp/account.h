// Account: the limits that calls run under, and the means to stop them.
//
// A machine has an account. The function values that its programs make carry it: a call of one is
// subject to the limits under which it was made, on whatever machine and thread it runs, and
// Machine::cancel stops it. A nested call is also subject to what is left of the outer call's
// limits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "object/object.h"

namespace tenon::vm {

// What one call from the host may use. A nested call draws on what is left of the outer one's.
struct Limits {
  // One unit per function entry and per taken backward jump.
  int64_t fuel = std::numeric_limits<int64_t>::max();
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();  // from the call's start
  // Stack, storage from the machine's pools, objects, and workspace of packed functions and
  // kernels; 0 for no limit.
  size_t memory = 0;
  uint32_t depth = 1 << 20;                // frames
  size_t stack_bytes = size_t{256} << 20;  // of registers; address space, not memory
  int32_t threads = 0;                     // for parallel loops; 0 for all available

  bool operator==(const Limits&) const = default;
};

// The account's calls that run on other machines than the account's own. Thread-safe.
class RunningCalls : public Object {
 public:
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Registers a call, identified by its interrupt word, for as long as this object lives.
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

  // Sets `bits` in every call's word; returns whether there was any call.
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
  static Ref<Account> of(const Limits& limits);  // with its own RunningCalls

  // An account that allows only what both allow: `inner` if it is no less strict than `outer`,
  // `outer` if that is stricter, otherwise a new one with the calls of `inner`.
  static Ref<Account> stricter(const Ref<Account>& outer, const Ref<Account>& inner);
};

}  // namespace tenon::vm
