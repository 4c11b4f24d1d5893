// Account: the limits that calls run under, and the means to stop them.
//
// A machine has an account, and so has each function value that the host makes of a program. A
// call's account in force combines the one of its machine or function value with those of the calls
// around it: the strictest of each limit holds, and cancelling any of them stops the call. Function
// values that the call makes carry the account in force to whatever machine and thread calls them.
//
// A function value that is called within a call runs on that call's machine, whatever its Program.
// If its account adds nothing to the one in force, as that of a closure which the running call
// made, the call shares its stack and limits. Any other enters through Machine::call_code, where
// Machine::Bounds gives it at most what the call around it has left, registers it with everyone who
// may cancel it, and finally charges the call around it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>

#include "object/object.h"

namespace tenon::vm {

// What one call from the host may use. A call within it draws on what is left.
struct Limits {
  // One unit per function entry and per taken backward jump.
  int64_t fuel = std::numeric_limits<int64_t>::max();
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();  // from the call's start
  // The stack, the pool's blocks with their headers and alignment, every object made during the
  // call (object/object_budget.h), and what packed functions and kernels allocate on any thread
  // (device/call_context.h). What outlives the call is no longer counted. 0 for no limit.
  size_t memory = 0;
  uint32_t depth = 1 << 20;                // frames
  size_t stack_bytes = size_t{256} << 20;  // of registers; address space, not memory
  static constexpr size_t kLeastStackBytes = size_t{64} << 10;  // less is raised to this
  int32_t threads = 0;  // for parallel loops; 0 for all available

  bool operator==(const Limits&) const = default;
};

// The stricter of two limits of which 0 means none.
template <class T>
T stricter(T x, T y) {
  using Unsigned = std::make_unsigned_t<T>;  // where subtracting one makes 0 the largest number
  return static_cast<Unsigned>(x) - Unsigned{1} < static_cast<Unsigned>(y) - Unsigned{1} ? x : y;
}

// The running calls that one machine's cancel, or one function value's, stops. A machine's own call
// isn't among them. Thread-safe.
class RunningCalls : public Object {
 public:
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Registers a call for as long as this object lives. To stop the call, `bits` are set in its
  // interrupt word.
  class Entry {
   public:
    Entry(Ref<RunningCalls> calls, std::atomic<uint32_t>* word, uint32_t bits);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    bool is_interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

   private:
    friend class RunningCalls;
    Ref<RunningCalls> calls_;
    std::atomic<uint32_t>* word_;
    uint32_t bits_;
    std::atomic<bool> interrupted_{false};
    Entry* next_;
    Entry** link_;
  };

  // Stops every call; returns whether there was any.
  bool interrupt();
  // Sets kAsked in every call's interrupt word: the host is to be asked (device/host_check.h).
  static constexpr uint32_t kAsked = 8;
  void request_check();

 private:
  std::mutex mutex_;
  Entry* first_ = nullptr;
};

// Immutable.
struct Account : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;
  static constexpr int32_t kTypeLast = kTypeIndex;

  Limits limits;
  // Where calls under this account are registered, so that they can be cancelled: first the ones of
  // the machine or function value itself, then those of the accounts that it was combined with.
  // Stored behind the object.
  std::span<Ref<RunningCalls>> calls;

  ~Account();
  size_t tail_bytes() const { return calls.size_bytes(); }

  static Ref<const Account> of(const Limits& limits, const Ref<RunningCalls>& calls);
  bool has(const Ref<RunningCalls>& wanted) const;
  // Whether `other` adds nothing to this account: none of its limits is stricter, and whoever
  // cancels its calls cancels this account's too.
  bool includes(const Account& other) const;
  // The account of a call under `inner` within a call under `outer`: one of the two if that
  // includes the other, otherwise a new one.
  static Ref<const Account> combined(const Account& outer, const Account& inner);
};

}  // namespace tenon::vm
