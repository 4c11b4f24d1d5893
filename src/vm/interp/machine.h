// Machine: runs a Program's functions, one call at a time, on one thread at a time. It is cheap:
// address space for a stack, and pools that fill as they are used.
//
//   auto program = Program::load("net.tnx");
//   Machine machine(program);
//   Any result = machine.call("main", input);
//
// Registers are Anys in one contiguous stack; a frame is a window on it, and a call's arguments are
// placed where the callee's window begins. Everything above the current frame is None. A call
// between functions of the Program never recurses on the native stack. The machine stays usable
// after any error.
//
// A function value of another Program that is called while a call runs here runs here too, on what
// is left of that call's limits. A tensor in a register that isn't read-only lies in memory that
// this call allocated for the Program which runs: that alone may be written.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "device/call_context.h"
#include "object/any.h"
#include "vm/interp/account.h"
#include "vm/interp/deadline.h"
#include "vm/interp/op.h"
#include "vm/interp/pool.h"
#include "vm/interp/program.h"
#include "vm/interp/stack.h"

namespace tenon::vm {

// Settings of a machine that are no limits.
struct MachineOptions {
  // A debug mode: storage reads as kPoison (device/call_context.h) before it is first written and
  // after its last use, so that a wrong memory plan shows in the results.
  bool poison = false;
};

// What an instrument sees of a call.
struct CallEvent {
  enum class Kind : uint8_t { Function, Closure, Packed, Kernel };
  bool before = true;
  Kind kind = Kind::Function;
  std::string_view callee;
  std::string_view caller;
  uint32_t caller_index = 0;      // of the function in the unit
  uint32_t offset = 0;            // of the instruction, in words of the caller's code
  std::span<const AnyView> args;  // before; after a packed call as well, None where it took one
  Any* result = nullptr;          // after: the value. Before: what Skip gives as the call's result
};
enum class CallAction : uint8_t { Continue, Skip };
// Called before and after every call instruction, on the machine's thread. Before, it may skip the
// call (a tail call then returns the result). A tail call's end is seen as that of the call whose
// frame it took over. What it throws stops the call.
using Instrument = std::function<CallAction(const CallEvent&)>;

struct MachineStats {
  size_t peak_memory = 0;    // of the last call: storage from the pool
  size_t cached_memory = 0;  // free blocks that the pool keeps
};

class Machine final : private CallContext {
 public:
  explicit Machine(Ref<Program> program, Limits limits = {}, MachineOptions options = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const Program& program() const { return *home_; }

  // Calls an exported function. Arguments are borrowed, and the program can't write into their
  // tensors, which are rewrapped as read-only, and copied where they aren't compact or aligned; a
  // result that is an argument is read-only too. Throws Usage errors for a wrong name or argument
  // count, otherwise what the call fails with, with the machine's frames as backtrace: also a
  // Runtime error when the function returns something else than its signature says.
  Any call(std::string_view function, std::span<const AnyView> args);
  Any call(uint32_t function_index, std::span<const AnyView> args);
  template <class... Args>
  requires(sizeof...(Args) != 1 ||
           !(std::is_convertible_v<Args, std::span<const AnyView>> && ...)) Any
      call(std::string_view function, const Args&... args) {
    Any held[sizeof...(Args) + 1] = {Any(args)...};
    return call(function, std::span(static_cast<const AnyView*>(held), sizeof...(Args)));
  }

  // Not while a call runs. A Runtime error, which leaves the old limits, when the system has no
  // address space for the stack.
  void set_limits(const Limits& limits);
  const Limits& limits() const { return account_->limits; }
  void set_instrument(Instrument instrument);

  // Stops the running call with an error, soon; from any thread. So it does the calls that the host
  // makes of function values which this machine's calls returned, wherever they run, and calls of
  // other machines that run within one of these. Without any, nothing happens, then or later.
  // Whether one ran.
  bool cancel();
  // What is left of the current or was left of the last call's fuel.
  int64_t fuel_left() const { return fuel_; }
  MachineStats stats() const;

  // The machine that runs on this thread, or null.
  static Machine* current();

  // Storage and tensors from the device's pool, under the call's memory limit, cleared for a
  // program that isn't trusted. An Unsupported error for a device that the machine doesn't have.
  // Packed functions that make results get them through device/device.h.
  Ref<StorageObj> allocate_storage(size_t bytes, size_t alignment = kDataAlignment,
                                   DLDevice device = kCpu);
  Tensor allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device = kCpu);
  // A closure of the running Program, on the running call's account.
  Ref<ClosureObj> new_closure(const FunctionCode& code, size_t captures) const {
    return ClosureObj::of(*program_, code, captures, account_);
  }
  // The value as the program may hold it: a tensor that it may not write becomes read-only.
  void protect(Any* value) const {
    if (value->type_index == TypeIndex::Tensor) protect_tensor(value);
  }
  // Of a tensor that was just made in a storage of the program's: see Pool::put_in_slot.
  void put_in_slot(const Tensor& tensor) { pool_->put_in_slot(tensor); }

 private:
  friend class Dispatch;
  friend struct ClosureObj;
  friend class Program;

  struct Frame {
    const Op* pc;   // of the call instruction that made the frame above
    AnyView* base;  // of the caller
  };
  void protect_tensor(Any* value) const;

  class Current;
  class Outermost;
  class Nested;
  enum Attention : uint32_t { kCancelled = 1, kExpired = 2, kInstrumented = 4, kIdle = 8 };
  using Clock = Deadline::Clock;

  // What the running call is held to, for messages and for the calls within it.
  struct InForce {
    int64_t fuel = 0;
    std::chrono::nanoseconds deadline{};
    Clock::time_point end = Clock::time_point::max();
  };

  // Of the running call, for what works for it.
  bool count_memory(size_t bytes) override { return pool_->count_outside(bytes); }
  void discount_memory(size_t bytes) override { pool_->discount_outside(bytes); }
  void fail_memory(size_t bytes) override { pool_->fail_cap(bytes); }
  void poll() override;
  Ref<StorageObj> allocate(size_t bytes, size_t alignment) override;
  bool may_write(const Tensor& tensor) const override;
  std::optional<int> fill_byte() const override;
  bool poisons() const override { return pool_->poisons(); }
  Any take(const Object* function, const AnyView* args, int32_t i) override;

  // A machine of the Program's own, for function values that the host calls outside of any call.
  struct Unowned {};
  Machine(Unowned, const Program* program);
  // Makes the calls of such a machine run on that account.
  void work_for(Ref<Account> account);

  // The pool of a device: there is one, the CPU's.
  Pool& pool_on(DLDevice device) const;
  static Limits checked(Limits limits);
  void reserve(const Limits& limits);
  size_t stack_committed() const;
  // Calls a function of `program`, which may be another than the machine's. `account` is that of
  // the function value which is called; null for the machine's own.
  Any call_code(const Program& program, const FunctionCode& code, std::span<const Any> captures,
                std::span<const AnyView> args, const Ref<Account>& account);
  Any enter(const Program& program, const FunctionCode& code, std::span<const Any> captures,
            std::span<const AnyView> args);
  Any prepare(const AnyView& argument);
  // Releases the registers from `start` on.
  void unwind(AnyView* start) noexcept;
  // The frames from the innermost to `entry`; those of a recursion once, with a count.
  void add_backtrace(Error& error, const Frame* entry) const;
  bool is_running() const { return !(attention_.load(std::memory_order_acquire) & kIdle); }
  void begin_call(size_t memory);
  void end_call() noexcept;
  void expire_if_due();

  Ref<Program> held_program_;  // null for the Program's own idle machines
  const Program* home_;        // what functions are called by name of
  const Program* program_;     // whose code runs
  Ref<Account> account_;       // of the running call, or of the next one
  const Ref<RunningCalls> calls_;
  Instrument instrument_;
  Pool* pool_;

  Reservation registers_, frames_;
  uint32_t depth_ = 0;      // what they are reserved for: frames,
  size_t stack_bytes_ = 0;  // and bytes of registers
  // Of the running call. `top_` is the first register above the current frame.
  const Op* pc_ = nullptr;
  AnyView* base_ = nullptr;
  AnyView* top_ = nullptr;
  Frame* frame_ = nullptr;             // the last one pushed; frames grow down
  AnyView* register_limit_ = nullptr;  // beyond it grow_stack is asked
  Frame* frame_limit_ = nullptr;
  int64_t fuel_ = 0;
  InForce in_force_;
  // What the running call has to look at; kIdle while none runs.
  std::atomic<uint32_t> attention_{kIdle};
  std::atomic<const void*> thread_{nullptr};  // that runs it, as Pool::this_thread names it
};

}  // namespace tenon::vm
