// The dispatch loop: runs pre-decoded code by jumping from handler to handler.
#pragma once

#include "vm/interp/machine.h"
#include "vm/interp/op.h"

namespace tenon::vm {

class Dispatch {
 public:
  // Where a handler's code begins: what the pre-decoder writes into the Ops.
  static const void* address_of(Handler handler);
  // Runs from the machine's pc until the entry's Exit. Throws what the call fails with; the
  // machine's pc, base, top and frame then say where.
  static void run(Machine& machine);
  // Throws when the call was cancelled or its deadline has passed.
  static void stop(Machine& m) { stop_if_asked(m); }
  // Makes room up to `top` and `frame`, or throws the limit that forbids it; fuel's too.
  static void grow(Machine& m, const AnyView* top, const Machine::Frame* frame) {
    grow_stack(m, top, frame);
  }
  // The register of argument i when the machine's instruction is a packed call of that function
  // object and that register's last use; else null.
  static AnyView* last_use(Machine& m, const Object* function, int32_t i);

 private:
  // Runs the machine; without one, returns the address of the handler's code.
  static const void* loop(Machine* machine, Handler asked);

  // The parts of handlers that are long or rare (call_path.cc).
  static void grow_stack(Machine& m, const AnyView* top, const Machine::Frame* frame);
  static void stop_if_asked(Machine& m);
  [[noreturn]] static void fail_interrupted(Machine& m);
  [[noreturn]] static void fail_fuel(Machine& m);
  [[noreturn]] static void fail_not_int(Machine& m);
  [[noreturn]] static void fail_overflow(Machine& m);
  [[noreturn]] static void fail_packed(const PackedSlot& slot);
  static void packed_call(Machine& m, const Op& op, AnyView* base);
  // A function value that isn't a closure of this program. `result_to` null drops the result.
  static void call_value(Machine& m, const Op& op, AnyView* base, AnyView callee,
                         AnyView* result_to);
  // The code of a closure of this program, its arity checked; null for any other function.
  static const FunctionCode* closure_code(Machine& m, const Op& op, const AnyView& callee);
  // A capture as the callee may hold it, owned. The registers below `slot` are live meanwhile.
  static AnyView captured(Machine& m, const Any& capture, AnyView* slot);
  static void tail_arguments(Machine& m, const Op& op, const FunctionCode& code, AnyView* base,
                             const AnyView* closure);
  // True when the instrument skips the call, whose result is then written.
  static bool before_call(Machine& m, const Op& op, AnyView* base, AnyView* result_to);
  static void after_call(Machine& m, const Op& op, AnyView* result);
  // The same for a result that lies in no register; the caller owns what comes back.
  static AnyView after_call_of_constant(Machine& m, const Op& op, const AnyView& result);
  static bool instrument(Machine& m, const Op& op, bool before, std::span<const AnyView> args,
                         Any* result);
};

// Registers are read and written as two words of 8 bytes: a load of 16 bytes would wait for the
// stores of 8 before it to reach the cache.
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

// A register's new value; the old one is released.
inline void put_words(AnyView& reg, RegisterWords owned) {
  RegisterWords old = read_words(reg);
  write_words(reg, owned);
  if (is_object(old)) [[unlikely]]
    release(object_of(old));
}
// Of a value that was just made: put together from its fields, since reading them as words would
// wait for their stores of 4 bytes.
inline RegisterWords words_of(AnyView v) {
  return {static_cast<uint32_t>(v.type_index) | static_cast<uint64_t>(v.small_length) << 32,
          v.v.bits};
}
inline void put(AnyView& reg, AnyView owned) {
  put_words(reg, words_of(owned));
}
inline void put_result(AnyView* base, int32_t offset, Any&& value) {
  if (offset >= 0) put(at(base, offset), value.leak());
}

// Out of line: the compiler would make a subtraction and a comparison of the two comparisons, of
// which the first almost always settles it.
[[gnu::noinline, gnu::cold]] bool is_boolean(const AnyView& v);
inline bool is_integer(const AnyView& v) {
  return v.type_index == TypeIndex::Int || is_boolean(v);
}

inline const AnyView& value_of(const ValueRef& ref, const AnyView* base) {
  return ref.constant ? *ref.constant : base[ref.reg];
}

// An integer operation on `a` and `b` that must not overflow did.
[[noreturn]] void fail_size_overflow(int64_t a, int64_t b);

// Registers that an instruction used for the last time become None.
inline void release_last_uses(const Operands& o, AnyView* base) {
  if (!o.releases) return;
  for (const ValueRef& ref : o.args) {
    if (ref.last) put(base[ref.reg], AnyView());
  }
}

}  // namespace tenon::vm
