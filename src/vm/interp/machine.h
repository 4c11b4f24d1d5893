// Machine: runs a Program's functions, one call at a time, on one thread at a time. Machines are
// cheap: address space for a stack, and pools that grow with use.
//
//   auto program = Program::load("net.tnx");
//   Machine machine(program);
//   Any result = machine.call("main", input);
//
// Registers are Anys in one contiguous stack; a frame is a window on it, and a call's arguments are
// placed at the start of the callee's window. Everything above the current frame is None. Calls
// between functions of the Program never recurse on the native stack. The machine stays usable
// after any error.
//
// If a function value of another Program, or with limits of its own, is called during a call, it
// runs on this machine too, within what is left of that call's limits. A tensor in a register that
// isn't read-only is in memory that this call allocated for the running Program: only that may be
// written.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string_view>

#include "device/call_context.h"
#include "object/any.h"
#include "vm/executable/code_abi.h"
#include "vm/interp/account.h"
#include "vm/interp/deadline.h"
#include "vm/interp/op.h"
#include "vm/interp/pool.h"
#include "vm/interp/program.h"
#include "vm/interp/stack.h"

namespace tenon::vm {

class Outputs;

// What compiled code reads and writes of a machine, in the order of CodeLayout
// (vm/executable/code_abi.h).
struct MachineState {
  struct Frame {
    // Of the call instruction that made the frame above; while compiled code runs, the piece that
    // goes on after it.
    const Op* pc;
    AnyView* base;  // of the caller
  };

  const CodeRuntime* runtime_ = nullptr;
  const Op* ops_ = nullptr;  // of the running Program, while its compiled code runs
  int64_t fuel_ = 0;
  AnyView* register_limit_ = nullptr;  // beyond it, grow_stack must be called
  Frame* frame_limit_ = nullptr;
  // Requests to the running call; Machine::kIdle if none is running.
  std::atomic<uint32_t> attention_;
  CodeValue value_;
  CodePiece entry_ = nullptr;
  const Program* running_;  // the Program whose code runs
  // What bounds the running call besides fuel and memory; while nothing runs, only the reserved
  // stack.
  struct InForce {
    const Account* account = nullptr;
    // Of each limit the one that leaves the least: the call's own, or that of a call around it.
    const Limits* limits = nullptr;
    Deadline::Clock::time_point end = Deadline::Clock::time_point::max();
    // The furthest that the stack may reach.
    AnyView* registers_end = nullptr;
    Frame* frames_begin = nullptr;
  } in_force_;
  std::exception_ptr failure_;  // of a function of the runtime that compiled code called

  MachineState(uint32_t attention, const Program* running)
      : attention_(attention), running_(running) {}
};

// Settings of a machine other than limits.
struct MachineOptions {
  // Debug mode: storage reads as kPoison (device/call_context.h) before it is first written and
  // after its last use, so that a wrong memory plan shows in the results. New memory is filled with
  // it, and so are freed blocks; alloc_tensor fills its part of a storage, both then and when the
  // last view of it dies; `tenon.append` moves what it would grow in place and fills the old
  // memory. Data that a program wrote and may still read never changes. Without it, new memory of
  // an untrusted program is zero, so that the program can't read data of others.
  bool poison = false;
  // Takes each block of memory from the system and returns it when it is freed, instead of keeping
  // it for later allocations.
  bool naive = false;
  // Threads for calls that may run at the same time, each on one thread (the instruction
  // `concurrent`), but at most Limits::threads; 1 runs them in order, as does a machine of a
  // program that isn't trusted.
  int32_t inter_op = 1;
};

// A call as an instrument sees it.
struct CallEvent {
  enum class Kind : uint8_t { Function, Closure, Packed, Kernel };
  bool before = true;
  Kind kind = Kind::Function;
  std::string_view callee;
  std::string_view caller;
  uint32_t caller_index = 0;  // of the function in the unit
  uint32_t offset = 0;        // of the instruction, in words of the caller's code
  uint32_t depth = 0;         // of the caller's frame: the same before the call and after it
  std::span<const AnyView>
      args;               // before; also after a packed call, with None for arguments that it took
  Any* result = nullptr;  // after: the result. Before: the result to use if it skips the call
  const Op* op = nullptr;
};
enum class CallAction : uint8_t { Continue, Skip };
// Called before and after every call instruction, on the machine's thread. Before a call, it may
// skip the call (a skipped tail call returns the result). The end of a tail call is reported as
// that of the call whose frame it reused. An exception stops the call.
using Instrument = std::function<CallAction(const CallEvent&)>;

class Machine final : private CallContext, private MachineState {
 public:
  explicit Machine(Ref<Program> program, Limits limits = {}, MachineOptions options = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The Program whose code runs: not the machine's own while a function value of another one runs.
  const Program& running_program() const { return *running_; }

  // Calls an exported function. Arguments are borrowed. The program can't write to their tensors,
  // which are rewrapped as read-only, and copied if they aren't compact or aligned; a result that
  // is an argument is read-only too. Throws a Usage error for a wrong name or argument count, the
  // call's error with the machine's frames as backtrace, or a Runtime error if the result doesn't
  // match the function's signature.
  Any call(std::string_view function, std::span<const AnyView> args);
  Any call(uint32_t function_index, std::span<const AnyView> args);
  template <class... Args>
  requires(sizeof...(Args) != 1 ||
           !(std::is_convertible_v<Args, std::span<const AnyView>> && ...)) Any
      call(std::string_view function, const Args&... args) {
    Any held[sizeof...(Args) + 1] = {Any(args)...};
    return call(function, std::span(static_cast<const AnyView*>(held), sizeof...(Args)));
  }
  // The same, with the results in tensors of the caller: one or None for each result (outputs.h).
  Any call_into(std::string_view function, std::span<const AnyView> args,
                std::span<const AnyView> outputs);
  // Calls a function value of any program on this machine, under its limits and the function's. A
  // Usage error for other functions.
  Any call_value(const AnyView& function, std::span<const AnyView> args);

  // The limits with those raised that are below what every call needs.
  static Limits checked(Limits limits);
  // No call may be running. A Runtime error, which leaves the old limits, if the system has no
  // address space for the stack.
  void set_limits(const Limits& limits);
  const Limits& limits() const { return account_->limits; }
  void set_instrument(Instrument instrument);

  // Stops the running call soon, with an error; from any thread. Also stops calls of function
  // values that this machine's calls made, on any machine, and calls of other machines within one
  // of these. Has no effect if nothing is running. Returns whether a call was running.
  bool cancel();
  // Has the running call ask the host (device/host_check.h) soon; from any thread.
  void request_check();
  // The function that is about to be called, as a value. For an instrument, before a call.
  Any callee(const CallEvent& event) const;

  // The fuel left in the current or after the last call.
  int64_t fuel_left() const { return fuel_; }

  // What the machine's pool has done; from any thread.
  PoolStats memory() const { return pool_->stats(); }
  // Returns the pool's free memory, and that of this thread's dead objects, to the system. A Usage
  // error if a call runs on another thread.
  void trim();

  // The error of a call to a machine that runs one on another thread.
  [[noreturn]] static void fail_busy();
  // The machine running on this thread, or null.
  static Machine* current();

  // Storage and tensors from the device's pool, under the call's memory limit, cleared for an
  // untrusted program. An Unsupported error for a device that the machine doesn't have. Packed
  // functions allocate their results through device/device.h instead.
  Ref<StorageObj> allocate_storage(size_t bytes, size_t alignment = kDataAlignment,
                                   DLDevice device = kCpu);
  Tensor allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device = kCpu);
  // A closure of the running Program, with the account in force.
  Ref<ClosureObj> new_closure(const FunctionCode& code, size_t captures) const {
    return ClosureObj::of(*running_, code, captures, Ref<const Account>(in_force_.account));
  }
  // Makes a value from outside of the program one that a register may hold: a tensor becomes
  // read-only if the program may not write it, and is copied if it isn't compact or aligned to its
  // elements. A program may write a tensor only if this call allocated its memory for it. All that
  // enters passes here (arguments, captures, results of packed functions, fields of containers),
  // and kernels and packed functions check that bit, so nothing writes to tensors of the caller, of
  // another Program, or of an earlier call.
  void protect(Any* value) {
    if (value->type_index == TypeIndex::Tensor) protect_tensor(value);
  }
  // Whether a register may hold the tensor as it is because this call allocated its memory, in
  // which it is compact and aligned. If not, `protect` decides.
  bool may_hold(const Tensor& t) const {
    constexpr uint64_t kPlaced = LayoutWord::kCompact | LayoutWord::kAligned;
    return (t.layout() & kPlaced) == kPlaced && may_write(t);
  }
  // Whether the host gave outputs for the innermost entry; and one of them, for alloc_result in the
  // running frame (Outputs::take).
  bool has_outputs() const { return outputs_ != nullptr; }
  Tensor take_output(int64_t index, DataType dtype, std::span<const int64_t> shape);
  // Whether the running function was called by the host.
  bool is_called_by_host() const;
  // For a tensor that was just made in storage of the program: see Pool::put_in_slot.
  void put_in_slot(const Tensor& tensor) { pool_->put_in_slot(tensor); }

 private:
  friend class Dispatch;
  friend class CompiledCode;
  friend struct ClosureObj;
  friend class IdleMachines;

  void protect_tensor(Any* value);

  class Current;
  class Claim;
  class Bounds;
  enum Attention : uint32_t {
    kCancelled = 1,        // the machine's whole call
    kNestedCancelled = 2,  // one of the calls within it on this machine
    kExpired = 4,
    kAsked = RunningCalls::kAsked,
    kStoppedByHost = 16,  // host_error_ says why
    kStopped = kCancelled | kNestedCancelled | kExpired | kStoppedByHost,
    kInterrupted = kStopped | kAsked,
    kInstrumented = 32,
    kIdle = 64,  // nothing runs
  };
  // Stops the running call on all threads that help with it, with an error of the host's.
  void stop_with(const Error& error);
  void forget_host_error();
  // Sets a bit of the running call's word; returns whether there is such a call.
  bool demand(Attention bit);
  using Clock = Deadline::Clock;

  // CallContext of the running call.
  bool count_memory(size_t bytes) override { return pool_->count_outside(bytes); }
  void discount_memory(size_t bytes) override { pool_->discount_outside(bytes); }
  void fail_memory(size_t bytes) override { pool_->fail_cap(bytes); }
  void poll() override;
  Ref<StorageObj> allocate(size_t bytes, size_t alignment) override;
  bool may_write(const Tensor& tensor) const override;
  std::optional<int> fill_byte() const override;
  bool poisons() const override { return pool_->poisons(); }
  Any take(const Object* function, const AnyView* args, int32_t i) override;

  // A machine owned by the Program, for function values that the host calls outside of any call.
  struct Unowned {};
  Machine(Unowned, const Program* program);
  // Makes such a machine run its calls under that account.
  void work_for(Ref<const Account> account);
  // Runs each exported function whose arguments are tensors of known dimensions, to prepare its
  // calls (device/preparation.h). Errors end the preparation of the function that they are in.
  void prepare_calls();
  void prepare_call(const FunctionCode& code, const Account& account);

  // The pool of a device: there is only the CPU's.
  Pool& pool_on(DLDevice device) const;
  void reserve(const Limits& limits);
  size_t stack_committed() const;
  // Checks the number of arguments of a call by name.
  const FunctionCode& callable(uint32_t function_index, size_t arguments) const;
  // Calls a function of `program`, which may differ from the machine's, under the account of the
  // called function value, or the machine's own. `outputs` may be null.
  Any call_code(const Program& program, const FunctionCode& code, std::span<const Any> captures,
                std::span<const AnyView> args, const Account& account, Outputs* outputs = nullptr);
  Any enter(const Program& program, const FunctionCode& code, std::span<const Any> captures,
            std::span<const AnyView> args, Outputs* outputs);
  // An argument of the host's as a value that the program may hold.
  Any admitted(const AnyView& argument);
  // Releases the registers from `start` on.
  void unwind(AnyView* start) noexcept;
  // Adds the frames from the innermost to `entry`; a recursion's frames once, with a count. The
  // innermost frame whose place is known is where the error is, unless it has a place.
  void add_backtrace(Error& error, const Frame* entry) const;
  // Whether a call runs on this thread.
  bool runs_here() const { return thread_.load(std::memory_order_relaxed) == Pool::this_thread(); }
  bool is_running() const { return !(attention_.load(std::memory_order_acquire) & kIdle); }
  void release_stack() noexcept;

  Ref<Program> held_program_;   // null for the Program's own idle machines
  const Program* home_;         // the Program whose functions are called by name
  Ref<const Account> account_;  // of calls by name
  const Ref<RunningCalls> calls_;
  Instrument instrument_;
  Pool* pool_;
  int32_t inter_op_ = 1;  // MachineOptions
  bool preparing_ = false;

  Reservation registers_, frames_;
  uint32_t depth_ = 0;      // reserved frames
  size_t stack_bytes_ = 0;  // reserved bytes of registers
  // Of the running call. `top_` is the first register above the current frame.
  const Op* pc_ = nullptr;
  AnyView* base_ = nullptr;
  AnyView* top_ = nullptr;
  Frame* frame_ = nullptr;                         // the last one pushed; frames grow down
  std::atomic<const Error*> host_error_{nullptr};  // owned; the first one
  std::atomic<const void*> thread_{nullptr};       // runs the call; from Pool::this_thread
  Bounds* nested_ = nullptr;                       // of the innermost nested call
  Outputs* outputs_ = nullptr;                     // of the innermost entry; null for none
};

}  // namespace tenon::vm
