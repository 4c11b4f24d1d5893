// The dispatch loop: runs pre-decoded code by jumping from handler to handler.
#pragma once

#include <cstdlib>
#include <span>

#include "object/array.h"
#include "object/cell.h"
#include "vm/interp/machine.h"
#include "vm/interp/op.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {

// The operands of a call of a closure: the closure, then the arguments.
inline constexpr size_t kClosure = value_operand(Opcode::CallClosure, "callee"),
                        kClosureArguments = value_operand(Opcode::CallClosure, "args");
static_assert(value_operand(Opcode::TailCallClosure, "callee") == kClosure &&
              value_operand(Opcode::TailCallClosure, "args") == kClosureArguments);

// An argument that doesn't match its parameter. For a caller from outside of the program, the place
// of the match in the code is no help.
class InputError : public Error {
 public:
  explicit InputError(const Error& error) : Error(error) {}
};

class Dispatch {
  friend class CompiledCode;

 public:
  // The address of a handler's code, which the pre-decoder writes into the Ops.
  static const void* address_of(Handler handler);
  // Runs from the machine's pc until the entry's Exit. Throws the call's error; the machine's pc,
  // base, top and frame then give its place.
  static void run(Machine& machine);
  // Throws if the call was cancelled or its deadline has passed.
  static void stop_if_asked(Machine& m);
  // Makes room up to `top` and `frame`, or throws if a limit (or fuel) is exceeded.
  static void grow_stack(Machine& m, const AnyView* top, const Machine::Frame* frame);
  // The register of argument i if the machine's instruction is a packed call of that function
  // object and the register's last use; otherwise null.
  static AnyView* last_use(Machine& m, const Object* function, int32_t i);

 private:
  // Runs the machine; if it is null, returns the address of the handler's code.
  static const void* loop(Machine* machine, Handler asked);
  // Repeats a Step that jumps to itself and whose condition doesn't hold. The counter and the fuel
  // are in the processor's registers: in memory, what one turn stores reaches the next only after
  // several cycles. Returns whether the condition holds now; if not, fuel or the interrupt word
  // stops the next turn, which isn't counted yet.
  static bool repeat_step(Machine& m, const Op& op, AnyView* base, int64_t bound);

  // The long or rare parts of handlers (call_path.cc, instrument_calls.cc).
  [[noreturn]] static void fail_interrupted(Machine& m);
  [[noreturn]] static void fail_fuel(Machine& m);
  [[noreturn]] static void fail_not_int(Machine& m);
  [[noreturn]] static void fail_overflow(Machine& m);
  [[noreturn]] static void fail_packed(const PackedSlot& slot);
  static void packed_call(Machine& m, const Op& op, AnyView* base);
  // Runs the calls behind `head` as chunks of a parallel loop: each on one of up to
  // Machine::inter_op_ threads, or in order if there is only one thread, or something to attend to,
  // such as an instrument. On a thread other than the machine's, a call has the machine as its
  // CallContext, which allocates nothing there, but no current machine. So only calls with
  // destinations are worth grouping.
  static void concurrent_calls(Machine& m, const Op& head, AnyView* base);
  // What a packed call does besides if the machine has attention. Before the call, true if the
  // instrument skips it; the result is then already written.
  static bool before_packed(Machine& m, const Op& op, std::span<const AnyView> args, Any* result);
  static void after_packed(Machine& m, const Op& op, AnyView* base, Any* result);
  // Calls a function value that closure_code has no code for. A null `result_to` drops the result.
  static void call_value(Machine& m, const Op& op, AnyView* base, AnyView callee,
                         AnyView* result_to);
  // The code of a closure of this program whose limits are in force already, after checking its
  // arity; null for any other function.
  static const FunctionCode* closure_code(Machine& m, const Op& op, const AnyView& callee);
  // A capture, owned and protected for the callee. The registers below `slot` stay live meanwhile.
  static AnyView captured(Machine& m, const Any& capture, AnyView* slot);
  // Makes room for a frame of the callee, and places the captures and arguments in it.
  static void place_closure(Machine& m, const Op& op, AnyView* base, const FunctionCode& callee,
                            const AnyView& closure);
  static void tail_arguments(Machine& m, const Op& op, const FunctionCode& code, AnyView* base,
                             const AnyView* closure);
  // Returns true if the instrument skips the call; the result is then already written.
  static bool before_call(Machine& m, const Op& op, AnyView* base, AnyView* result_to);
  static void after_call(Machine& m, const Op& op, AnyView* result);
  // The same for a result that isn't in a register; the caller owns the returned value.
  static AnyView after_call_of_constant(Machine& m, const Op& op, const AnyView& result);
  // Whether a preparing machine leaves out the call (prepare_calls.cc).
  static bool skips_in_preparation(Machine& m, const Op& op, std::span<const AnyView> args);
  // `frame` is the caller's.
  static bool instrument(Machine& m, const Op& op, bool before, const Machine::Frame* frame,
                         std::span<const AnyView> args, Any* result);
};

// The packed function in a slot as a value, which may outlive the Program; an error if none is
// linked.
Function function_of(const PackedSlot& slot);

// Rewraps a tensor that another library made: only ours have a layout word.
inline void admit_result(Any* result) {
  if (result->type_index == TypeIndex::Tensor &&
      !static_cast<TensorObj*>(result->v.object)->is_ours()) [[unlikely]] {
    *result = admit(*result);
  } else if (result->type_index >= TypeIndex::DLTensorPtr &&
             result->type_index <= TypeIndex::ObjectRValueRef) [[unlikely]] {
    *result = admit(*result);
  }
}

// Registers are read and written as two 8-byte words: a 16-byte load would stall on preceding
// 8-byte stores.
struct RegisterWords {
  uint64_t head;  // type index, and zero or a small string's length
  uint64_t payload;
};
static_assert(sizeof(RegisterWords) == sizeof(AnyView));

inline RegisterWords read_words(const AnyView& reg) {
  const auto* words = reinterpret_cast<const RegisterWords*>(&reg);
  return {words->head, words->payload};
}
inline void write_words(AnyView& reg, RegisterWords w) {
  auto* words = reinterpret_cast<RegisterWords*>(&reg);
  words->head = w.head;
  words->payload = w.payload;
}
inline bool is_object(RegisterWords w) {
  return static_cast<int32_t>(w.head) >= TypeIndex::ObjectBegin;
}
inline Object* object_of(RegisterWords w) {
  return reinterpret_cast<Object*>(w.payload);
}
inline RegisterWords shared(const AnyView& v) {
  RegisterWords w = read_words(v);
  if (is_object(w)) retain(object_of(w));
  return w;
}

// The value of a register, which is None afterwards.
inline RegisterWords moved(AnyView& reg) {
  const RegisterWords words = read_words(reg);
  write_words(reg, {0, 0});
  return words;
}
// A value that an instruction reads, owned: moved at its last use.
inline RegisterWords taken(const ValueRef& ref, AnyView* base) {
  if (ref.constant) return shared(*ref.constant);
  return ref.last ? moved(base[ref.reg]) : shared(base[ref.reg]);
}

// The fields of a cell or an array, which may be borrowed; without data for other values.
inline std::span<const Any> fields_of(const AnyView& object) {
  const int32_t type = std::abs(object.type_index);
  if (type == TypeIndex::Cell) {
    const auto* cell = static_cast<const CellObj*>(object.v.object);
    return {cell->begin(), static_cast<size_t>(cell->size)};
  }
  if (type != TypeIndex::Array) return {};
  const auto* array = static_cast<const ArrayObj*>(object.v.object);
  return {array->begin(), static_cast<size_t>(array->size)};
}

// The value for a register that borrows: an object's type index is negated, so that it isn't
// released.
inline RegisterWords borrowed(const AnyView& v) {
  const RegisterWords w = read_words(v);
  return is_object(w)
             ? RegisterWords{static_cast<uint32_t>(-static_cast<int32_t>(w.head)), w.payload}
             : w;
}
// What a register holds, whether or not it borrows.
inline AnyView unborrowed(AnyView v) {
  if (v.type_index < 0) v.type_index = -v.type_index;
  return v;
}

// Writes a register and releases its old value.
inline void put_words(AnyView& reg, RegisterWords owned) {
  RegisterWords old = read_words(reg);
  write_words(reg, owned);
  if (is_object(old)) [[unlikely]]
    release(object_of(old));
}
// For a value just made: assembled from its fields, since reading it as words would stall on its
// 4-byte stores.
inline RegisterWords words_of(AnyView v) {
  return {static_cast<uint32_t>(v.type_index) | static_cast<uint64_t>(v.small_length) << 32,
          v.v.bits};
}
template <class T>
RegisterWords words_of(Ref<T> made) {
  const auto type = static_cast<uint64_t>(made->type_index);
  return {type, reinterpret_cast<uintptr_t>(made.leak())};
}
inline void put(AnyView& reg, AnyView owned) {
  put_words(reg, words_of(owned));
}
inline void put_result(AnyView* base, int32_t offset, Any&& value) {
  if (offset >= 0) put(at(base, offset), value.leak());
}

// Out of line: otherwise the compiler would merge the two comparisons into a subtraction and a
// comparison, although the first almost always decides.
[[gnu::noinline, gnu::cold]] bool is_boolean(const AnyView& v);
inline bool is_integer(const AnyView& v) {
  return v.type_index == TypeIndex::Int || is_boolean(v);
}

inline const AnyView& value_of(const ValueRef& ref, const AnyView* base) {
  return ref.constant ? *ref.constant : base[ref.reg];
}

// Reports that an operation on sizes `a` and `b` overflowed.
[[noreturn]] void fail_size_overflow(int64_t a, int64_t b);

// Clears the registers that an instruction used for the last time.
inline void release_last_uses(const Operands& o, AnyView* base) {
  if (!o.releases) return;
  for (const ValueRef& ref : o.args) {
    if (ref.last) put(base[ref.reg], AnyView());
  }
}

}  // namespace tenon::vm
