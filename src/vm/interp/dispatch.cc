#include "vm/interp/dispatch.h"

#include <bit>
#include <cstring>

#include "support/text.h"
#include "vm/interp/arithmetic.h"
#include "vm/interp/slow_path.h"

// Computed gotos: each handler ends in its own indirect jump, which helps branch prediction.
#pragma GCC diagnostic ignored "-Wpedantic"
#ifdef __clang__  // `loop` returns its labels' addresses, to which only it jumps
#pragma GCC diagnostic ignored "-Wreturn-stack-address"
#endif

namespace tenon::vm {

#define NEXT()          \
  do {                  \
    ++pc;               \
    goto * pc->handler; \
  } while (0)

// The loop's state is in local variables. This saves it to the machine, before anything that
// throws, reads the machine or may run foreign code (as releasing an object may).
#define SAVE()                     \
  do {                             \
    m.pc_ = pc;                    \
    m.base_ = base;                \
    m.top_ = &at(base, pc->frame); \
    m.frame_ = record;             \
  } while (0)

// Writes a register with an owned value and releases the old one.
#define PUT(reg, owned)                         \
  do {                                          \
    AnyView& destination = (reg);               \
    const RegisterWords words = (owned);        \
    if (destination.is_object()) [[unlikely]] { \
      SAVE();                                   \
      put_words(destination, words);            \
    } else {                                    \
      write_words(destination, words);          \
    }                                           \
  } while (0)
#define PUT_BOOL(reg, value) PUT(reg, scalar(TypeIndex::Bool, (value)))
// The same for the end of an instruction: the release stands once.
#define PUT_NEXT(reg, owned)                    \
  do {                                          \
    AnyView& destination = (reg);               \
    const RegisterWords words = (owned);        \
    if (destination.is_object()) [[unlikely]] { \
      full = &destination;                      \
      result = words;                           \
      goto put_and_release;                     \
    }                                           \
    write_words(destination, words);            \
    NEXT();                                     \
  } while (0)
#define PUT_INT_NEXT(reg, value) PUT_NEXT(reg, scalar(TypeIndex::Int, (value)))

// A taken backward jump costs a unit of fuel and checks the interrupt word. The jump was fused into
// this instruction from `fused` instructions later; the distance is relative to this one.
#define JUMP_OF(fused, distance)                                                                   \
  do {                                                                                             \
    const int64_t by = (distance);                                                                 \
    if (by <= static_cast<int64_t>((fused) * sizeof(Op)) &&                                        \
        (--m.fuel_ < 0 || (m.attention_.load(std::memory_order_relaxed) & Machine::kInterrupted))) \
        [[unlikely]] {                                                                             \
      target = ahead(pc, by);                                                                      \
      pc += (fused);                                                                               \
      goto stopped;                                                                                \
    }                                                                                              \
    pc = ahead(pc, by);                                                                            \
    goto * pc->handler;                                                                            \
  } while (0)
#define JUMP(distance) JUMP_OF(0, distance)

// Enters the function at `entry` in a frame above this one; the expression `arguments` fills the
// frame.
#define CALL(entry, arguments)                                                                  \
  do {                                                                                          \
    if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {                            \
      SAVE();                                                                                   \
      if (before_call(m, *pc, base, pc->a >= 0 ? &at(base, pc->a) : nullptr)) NEXT();           \
    }                                                                                           \
    const Op* const target = (entry);                                                           \
    AnyView* const frame = &at(base, pc->frame);                                                \
    AnyView* const top = &at(frame, target->frame);                                             \
    if (--m.fuel_ < 0 || top > m.register_limit_ || record - 1 < m.frame_limit_) [[unlikely]] { \
      SAVE();                                                                                   \
      grow_stack(m, top, record - 1);                                                           \
    }                                                                                           \
    (arguments);                                                                                \
    *--record = {pc, base};                                                                     \
    base = frame;                                                                               \
    pc = target;                                                                                \
    goto * pc->handler;                                                                         \
  } while (0)

// Sets the frame's registers from `first` on to None.
#define CLEAR_FROM(first)                                     \
  do {                                                        \
    AnyView* const end = &at(base, pc->frame);                \
    for (AnyView* reg = (first); reg != end; ++reg) {         \
      if (reg->is_object()) [[unlikely]] {                    \
        SAVE();                                               \
        put(*reg, AnyView());                                 \
      } else {                                                \
        std::memset(static_cast<void*>(reg), 0, sizeof *reg); \
      }                                                       \
    }                                                         \
  } while (0)

// Leaves the frame: clears its registers, and passes `value`, which is owned, to the caller.
#define RETURN(value)              \
  do {                             \
    CLEAR_FROM(base);              \
    pc = record->pc;               \
    base = record->base;           \
    ++record;                      \
    if (pc->a >= 0) {              \
      PUT(at(base, pc->a), value); \
    } else if (is_object(value)) { \
      SAVE();                      \
      release(object_of(value));   \
    }                              \
    NEXT();                        \
  } while (0)

// The handlers of the binary operations' forms. Each defines a and b, the names that the table's
// conditions use.
#define BINARY(identifier, expression)                        \
  handle_##identifier##RR : {                                 \
    const AnyView &x = at(base, pc->b), &y = at(base, pc->c); \
    if (!is_integer(x) || !is_integer(y)) [[unlikely]]        \
      goto not_integer;                                       \
    const int64_t a = x.v.i, b = y.v.i;                       \
    expression                                                \
  }                                                           \
  handle_##identifier##RI : {                                 \
    const AnyView& x = at(base, pc->b);                       \
    if (!is_integer(x)) [[unlikely]]                          \
      goto not_integer;                                       \
    const int64_t a = x.v.i, b = pc->imm;                     \
    expression                                                \
  }
#define INTEGER_RESULT(function)          \
  {                                       \
    int64_t r;                            \
    if (!function(a, b, &r)) [[unlikely]] \
      goto overflow;                      \
    PUT_INT_NEXT(at(base, pc->a), r);     \
  }
#define BOOLEAN_RESULT(condition) \
  { PUT_NEXT(at(base, pc->a), scalar(TypeIndex::Bool, (condition))); }
#define FLOAT_BINARY(identifier, expression)                                               \
  handle_##identifier : {                                                                  \
    const BinaryOperands& o = *pc->binary;                                                 \
    const AnyView &x = value_of(o.a, base), &y = value_of(o.b, base);                      \
    if (x.type_index != TypeIndex::Float || y.type_index != TypeIndex::Float || pc->a < 0) \
        [[unlikely]]                                                                       \
      goto run_binary;                                                                     \
    const double a = x.v.f, b = y.v.f;                                                     \
    PUT_NEXT(at(base, pc->a), of_float(expression));                                       \
  }
// The end of a comparison fused with the branch that follows.
#define BRANCH_ON(condition, otherwise) \
  const bool holds = (condition);       \
  PUT_BOOL(at(base, pc->a), holds);     \
  if (!holds) JUMP_OF(1, otherwise);    \
  pc += 2;                              \
  goto * pc->handler;
#define BRANCH(identifier, condition)                         \
  handle_##identifier##IfRR : {                               \
    const AnyView &x = at(base, pc->b), &y = at(base, pc->c); \
    if (!is_integer(x) || !is_integer(y)) [[unlikely]]        \
      goto not_integer;                                       \
    const int64_t a = x.v.i, b = y.v.i;                       \
    BRANCH_ON(condition, pc->imm)                             \
  }                                                           \
  handle_##identifier##IfRI : {                               \
    const AnyView& x = at(base, pc->b);                       \
    if (!is_integer(x)) [[unlikely]]                          \
      goto not_integer;                                       \
    const int64_t a = x.v.i, b = pc->imm;                     \
    BRANCH_ON(condition, pc->c)                               \
  }
// The counter already is an integer, so there is nothing to release. `bound` reads the other
// operand of the comparison. A jump to the addition itself closes a loop of this instruction alone.
#define STEP(bound)                                                              \
  {                                                                              \
    AnyView& counter = at(base, pc->a);                                          \
    if (!is_integer(counter)) [[unlikely]]                                       \
      goto not_integer;                                                          \
    int64_t a = counter.v.i, b;                                                  \
    arithmetic::op_add(a, pc->step.by, &a);                                      \
    write_words(counter, scalar(TypeIndex::Int, a));                             \
    bound;                                                                       \
    bool holds = (order_of(a, b) & pc->step.orders) != 0;                        \
    PUT_BOOL(at(base, pc->b), holds);                                            \
    if (!holds && pc->step.otherwise == 0) holds = repeat_step(m, *pc, base, b); \
    if (!holds) JUMP_OF(2, pc->step.otherwise);                                  \
    pc += 3;                                                                     \
    goto * pc->handler;                                                          \
  }

// By class: opcodes that the slow path runs, and opcodes with handlers written out below.
#define SLOW(identifier, mnemonic)                       \
  handle_##identifier : slow = slow_path::op_##mnemonic; \
  goto run_slow;
#define BELOW(identifier, mnemonic)
#define HANDLER_OF_Plain SLOW
#define HANDLER_OF_Function SLOW
#define HANDLER_OF_Unpack SLOW
#define HANDLER_OF_Match SLOW
#define HANDLER_OF_Binary BELOW
#define HANDLER_OF_Comparison BELOW
#define HANDLER_OF_Call BELOW
#define HANDLER_OF_Return BELOW
#define HANDLER_OF_Goto BELOW
#define HANDLER_OF_If BELOW
#define HANDLER_OF_IfEq BELOW
#define HANDLER_OF_Switch BELOW
#define HANDLER_OF_Move BELOW
#define HANDLER_OF_LoadInt BELOW
#define HANDLER_OF_Kill BELOW
#define HANDLER_OF_Concurrent BELOW

namespace {

inline RegisterWords scalar(int32_t type, int64_t v) {
  return {static_cast<uint64_t>(type), static_cast<uint64_t>(v)};
}
inline RegisterWords of_float(double v) {
  return {static_cast<uint64_t>(TypeIndex::Float), std::bit_cast<uint64_t>(v)};
}
inline RegisterWords of_float(bool v) {
  return scalar(TypeIndex::Bool, v);
}
inline const Op* ahead(const Op* pc, int64_t bytes) {
  return reinterpret_cast<const Op*>(reinterpret_cast<const char*>(pc) + bytes);
}

// Places the arguments in a new frame, whose registers are None.
inline void place(const std::vector<ValueRef>& args, AnyView* base, AnyView* frame) {
  for (const ValueRef& ref : args) {
    write_words(*frame, ref.borrowed ? borrowed(base[ref.reg]) : taken(ref, base));
    ++frame;
  }
}

}  // namespace

const void* Dispatch::address_of(Handler handler) {
  return loop(nullptr, handler);
}
void Dispatch::run(Machine& machine) {
  loop(&machine, Handler::Exit);
}

bool Dispatch::repeat_step(Machine& m, const Op& op, AnyView* base, int64_t bound) {
  int64_t counter = at(base, op.a).v.i, fuel = m.fuel_;
  const Step step = op.step;
  bool holds = false;
  while (!holds && fuel > 0 &&
         !(m.attention_.load(std::memory_order_relaxed) & Machine::kInterrupted)) {
    --fuel;
    arithmetic::op_add(counter, step.by, &counter);
    holds = (order_of(counter, bound) & step.orders) != 0;
  }
  m.fuel_ = fuel;
  at(base, op.a).v.i = counter;
  at(base, op.b).v.i = holds;
  return holds;
}

const void* Dispatch::loop(Machine* machine, Handler asked) {
  if (!machine) {
    // Distances instead of addresses, which a shared library would relocate one by one.
    static const int32_t kDistances[] = {
#define TENON_HANDLER(identifier, instructions)                    \
  static_cast<int32_t>(static_cast<char*>(&&handle_##identifier) - \
                       static_cast<char*>(&&handle_Exit)),
#include "vm/interp/handlers.def"
    };
    return static_cast<char*>(&&handle_Exit) + kDistances[static_cast<size_t>(asked)];
  }

  Machine& m = *machine;
  const Op* pc = m.pc_;
  AnyView* base = m.base_;
  Machine::Frame* record = m.frame_;                      // the caller's record
  const Op* target = nullptr;                             // of a jump that stops to be asked
  void (*slow)(Machine&, const Op&, AnyView*) = nullptr;  // of an instruction of the slow path
  AnyView* full = nullptr;                                // a register to write and to release
  RegisterWords result{};
  int64_t index = 0;    // of a field
  int32_t borrows = 0;  // whether it is to be borrowed
  goto * pc->handler;

  // ---- control ----
handle_RetRegister : {
  if (m.attention_.load(std::memory_order_relaxed) & Machine::kInstrumented) [[unlikely]] {
    SAVE();
    after_call(m, *record->pc, &at(base, pc->a));
  }
  AnyView& returned = at(base, pc->a);
  const RegisterWords value = read_words(returned);
  returned.type_index = TypeIndex::None;  // so that it isn't released with the frame
  RETURN(value);
}
handle_Ret : {
  RegisterWords value;
  if (m.attention_.load(std::memory_order_relaxed) & Machine::kInstrumented) [[unlikely]] {
    SAVE();
    value = read_words(after_call_of_constant(m, *record->pc, *pc->constant));
  } else {
    value = shared(*pc->constant);
  }
  RETURN(value);
}
handle_Exit:
  return nullptr;
handle_Goto:
  JUMP(pc->a);
handle_If : {
  const AnyView& condition = at(base, pc->a);
  if (condition.type_index != TypeIndex::Bool && !is_integer(condition)) [[unlikely]]
    goto not_integer;
  if (condition.v.i == 0) JUMP(pc->b);
  NEXT();
}
handle_IfEq : {
  const AnyView& a = at(base, pc->a);
  int64_t b = pc->imm;
  if (pc->b >= 0) {
    if (!is_integer(at(base, pc->b))) [[unlikely]]
      goto not_integer;
    b = at(base, pc->b).v.i;
  }
  if (!is_integer(a)) [[unlikely]]
    goto not_integer;
  if (a.v.i != b) JUMP(pc->c);
  NEXT();
}
handle_Switch : {
  const SwitchOperands& o = *pc->cases;
  const AnyView& value = value_of(o.value, base);
  if (!is_integer(value)) [[unlikely]]
    goto not_integer;
  int64_t distance = o.otherwise;
  const auto place = static_cast<uint64_t>(value.v.i);
  if (place < o.dense) {
    distance = o.cases[place].jump;
  } else {
    for (const SwitchOperands::Case& c : o.cases) {
      if (c.value != value.v.i) continue;
      distance = c.jump;
      break;
    }
  }
  JUMP(distance * static_cast<int64_t>(sizeof(Op)));
}

  // ---- calls ----
handle_Call:
  CALL(pc->as<Opcode::Call>().callee->entry, place(pc->operands->args, base, frame));
handle_CallOne:
  CALL(ahead(pc, pc->c), write_words(*frame, shared(at(base, pc->b))));
handle_CallOneLast:
  CALL(ahead(pc, pc->c), write_words(*frame, moved(at(base, pc->b))));
handle_TailCall : {
  SAVE();
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (before_call(m, *pc, base, &base[0])) goto return_register_0;
  }
  --m.fuel_;
  const FunctionCode& callee = *pc->as<Opcode::TailCall>().callee;
  tail_arguments(m, *pc, callee, base, nullptr);
  pc = callee.entry;
  goto * pc->handler;
}
handle_TailCallInPlace : {
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    SAVE();
    if (before_call(m, *pc, base, &base[0])) goto return_register_0;
  }
  if (--m.fuel_ < 0) [[unlikely]]
    goto stopped;
  CLEAR_FROM(&at(base, pc->b));
  pc = ahead(pc, pc->a);
  goto * pc->handler;
}
handle_CallPacked:
  SAVE();
  packed_call(m, *pc, base);
  NEXT();
handle_Concurrent:
  SAVE();
  concurrent_calls(m, *pc, base);
  pc += pc->imm;
  NEXT();
handle_CallClosure : {
  SAVE();
  const AnyView value = value_of(pc->as<Opcode::CallClosure>().args[kClosure], base);
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (before_call(m, *pc, base, pc->a >= 0 ? &at(base, pc->a) : nullptr)) NEXT();
  }
  const FunctionCode* const callee = closure_code(m, *pc, value);
  if (!callee) {
    call_value(m, *pc, base, value, pc->a >= 0 ? &at(base, pc->a) : nullptr);
    NEXT();
  }
  place_closure(m, *pc, base, *callee, value);
  *--record = {pc, base};
  AnyView* const caller = base;
  base = &at(base, pc->frame);
  const Op& call = *pc;
  pc = callee->entry;
  SAVE();
  release_last_uses(call.as<OpClass::Call>(), caller);
  goto * pc->handler;
}
handle_TailCallClosure : {
  SAVE();
  const AnyView value = value_of(pc->operands->args[kClosure], base);
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (before_call(m, *pc, base, &base[0])) goto return_register_0;
  }
  const FunctionCode* const callee = closure_code(m, *pc, value);
  if (!callee) {
    call_value(m, *pc, base, value, &base[0]);
    goto return_register_0;
  }
  --m.fuel_;
  tail_arguments(m, *pc, *callee, base, &value);
  pc = callee->entry;
  goto * pc->handler;
}
return_register_0 : {
  // The frame has a register: that of a tail call's closure operand, or space made here.
  const RegisterWords value = moved(base[0]);
  RETURN(value);
}

  // ---- registers ----
handle_MoveRegister : { PUT_NEXT(at(base, pc->a), shared(at(base, pc->b))); }
handle_MoveLast : {
  const RegisterWords value = moved(at(base, pc->b));
  PUT_NEXT(at(base, pc->a), value);
}
handle_Move:
handle_LoadConst : { PUT_NEXT(at(base, pc->a), shared(*pc->constant)); }
handle_LoadInt:
  PUT_INT_NEXT(at(base, pc->a), pc->imm);
handle_Kill:
  SAVE();
  for (int32_t reg : pc->as<Opcode::Kill>().registers) put(base[reg], AnyView());
  NEXT();

  // ---- the slow path's instructions ----
handle_GetTagRegister : {
  const AnyView& value = at(base, pc->b);
  slow = slow_path::op_get_tag;
  if (value.type_index != pc->c) [[unlikely]]  // that of a cell, which may be borrowed
    goto run_slow;
  PUT_INT_NEXT(at(base, pc->a), static_cast<const CellObj*>(value.v.object)->tag);
}
handle_ElementOfRegister : {
  const AnyView& at_index = at(base, pc->c);
  slow = slow_path::op_get_field;
  if (!is_integer(at_index)) [[unlikely]]
    goto run_slow;
  borrows = 0;
  index = at_index.v.i;
  goto field;
}
handle_FieldOfRegister:
  slow = slow_path::op_get_field;
  borrows = pc->c >> 31;  // then all bits of the index are inverted
  index = pc->c ^ borrows;
field : {
  const std::span<const Any> fields = fields_of(at(base, pc->b));
  const auto place = static_cast<size_t>(index);
  if (place >= fields.size() || fields[place].type_index == TypeIndex::Tensor) [[unlikely]]
    goto run_slow;  // which may have to make the tensor read-only
  PUT_NEXT(at(base, pc->a), borrows ? borrowed(fields[place]) : shared(fields[place]));
}
handle_SetElement : {
  const AnyView &array = at(base, pc->a), &at_index = at(base, pc->b);
  slow = slow_path::op_array_set;
  if (!is_integer(at_index) || array.type_index != TypeIndex::Array) [[unlikely]]
    goto run_slow;
  auto* const elements = static_cast<ArrayObj*>(array.v.object);
  const auto place = static_cast<uint64_t>(at_index.v.i);
  if (place >= static_cast<uint64_t>(elements->size) || !elements->unique()) [[unlikely]]
    goto run_slow;
  const ValueRef& ref = pc->operands->args[value_operand(Opcode::ArraySet, "value")];
  const RegisterWords value = taken(ref, base);
  PUT_NEXT(elements->begin()[place], value);
}
handle_NarrowRegister : {
  const AnyView& x = at(base, pc->b);
  slow = slow_path::op_narrow;
  if (!is_integer(x)) [[unlikely]]
    goto run_slow;
  const int32_t unused = std::abs(pc->c);  // bits, which a signed type fills with its sign
  const uint64_t high = arithmetic::bits(x.v.i) << unused;
  PUT_INT_NEXT(at(base, pc->a), pc->c > 0 ? arithmetic::wrapped(high) >> unused
                                          : arithmetic::wrapped(high >> unused));
}
handle_RoundRegister : {
  const AnyView& x = at(base, pc->b);
  slow = slow_path::op_round_float;
  if (x.type_index != TypeIndex::Float) [[unlikely]]
    goto run_slow;
  PUT_NEXT(at(base, pc->a), of_float(static_cast<float>(x.v.f)));
}
#define TENON_OPCODE(identifier, mnemonic, number, op_class, ...) \
  HANDLER_OF_##op_class(identifier, mnemonic)
#include "vm/isa/opcodes.def"
run_slow:
  SAVE();
  slow(m, *pc, base);
  NEXT();

  // ---- integers ----
#define TENON_OPCODE(...)
#define TENON_FAST_BINARY(identifier, mnemonic, ...) \
  BINARY(identifier, INTEGER_RESULT(arithmetic::op_##mnemonic))
#define TENON_COMPARISON(identifier, mnemonic, number, exchanged, condition, ...) \
  BINARY(identifier, BOOLEAN_RESULT(condition))                                   \
  BRANCH(identifier, condition)
#include "vm/isa/opcodes.def"
handle_StepRR:
  STEP({
    const AnyView& y = at(base, pc->c);
    if (!is_integer(y)) [[unlikely]] {
      ++pc;
      goto not_integer;
    }
    b = y.v.i;
  })
handle_StepRI:
  STEP(b = pc->c)

  // ---- floats ----
#define TENON_OPCODE(...)
#define TENON_FAST_FLOAT_BINARY(identifier, mnemonic, number, expression, ...) \
  FLOAT_BINARY(identifier, expression)
#include "vm/isa/opcodes.def"

  // The general form of both: two immediates, dropped results, other types, rarer operations.
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, ...) handle_##identifier:
#define TENON_FLOAT_BINARY TENON_BINARY
#define TENON_FLOAT_UNARY TENON_BINARY
#define TENON_FAST_FLOAT_BINARY(...)
#define TENON_COMPARISON(identifier, ...) handle_##identifier:
#include "vm/isa/opcodes.def"
run_binary:
  SAVE();
  slow_path::binary(m, *pc, base);
  NEXT();

put_and_release:
  SAVE();
  put_words(*full, result);
  NEXT();

not_integer:
  SAVE();
  fail_not_int(m);
overflow:
  SAVE();
  fail_overflow(m);
stopped:
  SAVE();
  if (m.fuel_ < 0) fail_fuel(m);
  stop_if_asked(m);
  pc = target;
  goto * pc->handler;
}

}  // namespace tenon::vm
