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
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "device/call_context.h"
#include "object/any.h"
#include "vm/interp/op.h"
#include "vm/interp/pool.h"
#include "vm/interp/program.h"
#include "vm/interp/stack.h"

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
  // No limit, a debug mode: storage reads as kPoison (device/call_context.h) before it is first
  // written and after its last use, so that a wrong memory plan shows in the results.
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
  explicit Machine(Ref<Program> program, Limits limits = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const Program& program() const { return *program_; }

  // Calls an exported function. Arguments are borrowed, and the program can't write into their
  // tensors, which are rewrapped as read-only, and copied where they aren't compact or aligned; a
  // result that is an argument is read-only too. Throws Usage errors for a wrong name or argument
  // count, otherwise what the call fails with, with the machine's frames as backtrace.
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
  const Limits& limits() const { return limits_; }
  void set_instrument(Instrument instrument);

  // Stops the running call with an error, soon; from any thread. Without one, nothing happens, then
  // or later. Whether one ran.
  bool cancel();
  // What is left of the current or was left of the last call's fuel.
  int64_t fuel_left() const { return fuel_; }
  MachineStats stats() const;

  // The machine that runs on this thread, or null.
  static Machine* current();

  // Storage and tensors from the device's pool, under the call's memory limit. An Unsupported error
  // for a device that the machine doesn't have. Packed functions that make results get them through
  // device/device.h.
  Ref<StorageObj> allocate_storage(size_t bytes, size_t alignment = kDataAlignment,
                                   DLDevice device = kCpu);
  Tensor allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device = kCpu);
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
  class Current;
  enum Attention : uint32_t { kCancelled = 1, kExpired = 2, kInstrumented = 4, kIdle = 8 };

  // Of the running call, for what works for it.
  bool count_memory(size_t bytes) override { return pool_->count_outside(bytes); }
  void discount_memory(size_t bytes) override { pool_->discount_outside(bytes); }
  void fail_memory(size_t bytes) override { pool_->fail_cap(bytes); }
  void poll() override;
  Ref<StorageObj> allocate(size_t bytes, size_t alignment) override;
  bool may_write(const Tensor& tensor) const override;
  bool poisons() const override { return pool_->poisons(); }
  Any take(const Object* function, const AnyView* args, int32_t i) override;

  struct Unowned {};
  Machine(Unowned, const Program* program, Limits limits);

  // The pool of a device: there is one, the CPU's.
  Pool& pool_on(DLDevice device) const;
  void reserve(const Limits& limits);
  size_t stack_committed() const;
  Any call_code(const FunctionCode& code, std::span<const Any> captures,
                std::span<const AnyView> args);
  Any enter(const FunctionCode& code, std::span<const Any> captures, std::span<const AnyView> args);
  Any prepare(const AnyView& argument);
  // Releases the registers from `start` on.
  void unwind(AnyView* start) noexcept;
  // The frames from the innermost to `entry`; those of a recursion once, with a count.
  void add_backtrace(Error& error, const Frame* entry) const;
  bool is_running() const { return !(attention_.load(std::memory_order_acquire) & kIdle); }
  void begin_call();
  void end_call() noexcept;

  Ref<Program> held_program_;  // null for the Program's own idle machines
  const Program* program_;
  Limits limits_;
  Instrument instrument_;
  Pool* pool_;

  Reservation registers_, frames_;
  // Of the running call. `top_` is the first register above the current frame.
  const Op* pc_ = nullptr;
  AnyView* base_ = nullptr;
  AnyView* top_ = nullptr;
  Frame* frame_ = nullptr;             // the last one pushed; frames grow down
  AnyView* register_limit_ = nullptr;  // beyond it grow_stack is asked
  Frame* frame_limit_ = nullptr;
  int64_t fuel_ = 0;
  // What the running call has to look at; kIdle while none runs.
  std::atomic<uint32_t> attention_{kIdle};
  std::atomic<const void*> thread_{nullptr};  // that runs it, as Pool::this_thread names it
};

}  // namespace tenon::vm
