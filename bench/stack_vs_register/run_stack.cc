// The stack machine's loop. A frame is the function's locals, with its operands above them.
#include <cmath>

#include "machine.h"

#pragma GCC diagnostic ignored "-Wpedantic"  // computed gotos

namespace tenon::bench {

#define NEXT()                                                     \
  do {                                                             \
    if constexpr (counted) {                                       \
      ++m.counts.instructions;                                     \
      ++m.executed[static_cast<size_t>(pc - m.code.bytes.data())]; \
    }                                                              \
    goto* kHandlers[*pc++];                                        \
  } while (0)

#define JUMP()                                   \
  do {                                           \
    const int16_t distance = read_jump(pc);      \
    pc += distance;                              \
    if (distance < 0 && --fuel < 0) [[unlikely]] \
      fail_limit();                              \
    NEXT();                                      \
  } while (0)

template <bool counted>
Value run_stack(Machine& m, uint32_t called, std::span<const Value> args) {
  static const void* const kHandlers[] = {
#define BENCH_STACK_OP(identifier, ...) &&do_##identifier,
#include "operations.def"
  };
  References<counted> references{m.counts};
  const Value* const constants = m.constants.data();
  const CodeFunction* const functions = m.code.functions.data();
  const uint8_t* const bytes = m.code.bytes.data();
  const CodeFunction* function = &functions[called];
  Value* base = m.slots.data();
  Value* const limit = base + m.slots.size();
  Frame* frame = m.frames.data();
  Frame* const last_frame = frame + m.frames.size() - 1;
  int64_t fuel = m.fuel;
  m.counts = {};
  if constexpr (counted) m.executed.assign(m.code.bytes.size(), 0);

  Value* top = base;  // the first free slot
  auto push = [&](Value owned) __attribute__((always_inline)) {
    *top++ = owned;
  };
  auto pop = [&]() __attribute__((always_inline))->const Value& {
    return *--top;
  };
  auto local = [&](const uint8_t*& at) __attribute__((always_inline))->Value& {
    return base[read_unsigned(at)];
  };
  // Whether there is room for a frame.
  auto fits = [&](const Value* first, const CodeFunction& callee) __attribute__((always_inline)) {
    return first + callee.slots + callee.operands <= limit;
  };
  // Makes the arguments from `base` up to `top` the first locals.
  auto enter = [&](const CodeFunction& callee) __attribute__((always_inline)) {
    for (uint32_t i = callee.params; i < callee.slots; ++i) push(Value());
    function = &callee;
    return bytes + callee.entry;
  };

  for (const Value& arg : args) {
    references.retain(arg);
    push(arg);
  }
  *frame = {bytes, base, function, nullptr};
  const uint8_t* pc = enter(*function);
  NEXT();

do_Exit:
  return *base;
do_Ret : {
  const Value v = pop();
  for (Value *r = base, *end = base + function->slots; r != end; ++r) references.release(*r);
  top = base;
  push(v);
  pc = frame->pc;
  base = frame->base;
  function = frame->function;
  --frame;
  NEXT();
}
do_Goto:
  JUMP();
do_If : {
  const Value& condition = pop();
  if (!condition.is_integer()) [[unlikely]]
    fail_type();
  if (condition.integer() == 0) JUMP();
  pc += 2;
  NEXT();
}
do_IfEq : {
  const Value &b = pop(), &a = pop();
  if (!a.is_integer() || !b.is_integer()) [[unlikely]]
    fail_type();
  if (a.integer() != b.integer()) JUMP();
  pc += 2;
  NEXT();
}
do_Fatal:
  fail_fatal(constants[read_unsigned(pc)]);
do_Call : {
  const CodeFunction& callee = functions[read_unsigned(pc)];
  Value* const locals = top - callee.params;
  if (--fuel < 0 || !fits(locals, callee) || frame == last_frame) [[unlikely]]
    fail_limit();
  *++frame = {pc, base, function, nullptr};
  base = locals;
  pc = enter(callee);
  NEXT();
}
do_TailCall : {
  const CodeFunction& callee = functions[read_unsigned(pc)];
  if (--fuel < 0 || !fits(base, callee)) [[unlikely]]
    fail_limit();
  for (Value *r = base, *end = base + function->slots; r != end; ++r) references.release(*r);
  const Value* argument = top - callee.params;
  top = base;
  for (uint32_t i = 0; i < callee.params; ++i) push(*argument++);
  pc = enter(callee);
  NEXT();
}
do_CallPacked : {
  const tenon_packed_call callee = m.packed[read_unsigned(pc)];
  const uint64_t count = read_unsigned(pc);
  const Value v = call_packed(callee, top - count, count);
  for (uint64_t i = 0; i < count; ++i) references.release(pop());
  push(v);
  NEXT();
}
do_CallPackedBorrowed : {
  const tenon_packed_call callee = m.packed[read_unsigned(pc)];
  const uint64_t count = read_unsigned(pc);
  uint64_t owned = read_unsigned(pc);
  top -= count;
  const Value v = call_packed(callee, top, count);
  for (; owned; owned &= owned - 1) references.release(top[std::countr_zero(owned)]);
  push(v);
  NEXT();
}
do_GetLocal : {
  const Value v = local(pc);
  references.retain(v);
  push(v);
  NEXT();
}
do_TakeLocal:
  push(taken(local(pc)));
  NEXT();
do_GetLocalBorrowed:
  push(local(pc));
  NEXT();
do_SetLocal:
  references.put(local(pc), pop());
  NEXT();
do_TeeLocal:
  references.retain(top[-1]);
  references.put(local(pc), top[-1]);
  NEXT();
do_TeeLocalBorrowed:
  references.put(local(pc), top[-1]);
  NEXT();
do_ClearLocal:
  references.put(local(pc), Value());
  NEXT();
do_Drop:
  references.release(pop());
  NEXT();
do_Const : {
  const Value v = constants[read_unsigned(pc)];
  references.retain(v);
  push(v);
  NEXT();
}
do_Int:
  push(Value::of(read_signed(pc)));
  NEXT();
do_AllocAdt : {
  const uint64_t tag = read_unsigned(pc), count = read_unsigned(pc);
  CellObj* const cell = new_cell(tag, count);
  top -= count;
  for (uint64_t i = 0; i < count; ++i) field_of(cell, i) = top[i];
  push(of_cell(cell));
  NEXT();
}
do_GetField : {
  Value& object = top[-1];
  const Value field = read_field(object, read_unsigned(pc));
  references.retain(field);
  references.release(object);
  object = field;
  NEXT();
}
do_GetFieldBorrowed : {
  Value& object = top[-1];
  object = read_field(object, read_unsigned(pc));
  references.retain(object);
  NEXT();
}
do_GetTag : {
  Value& object = top[-1];
  const Value tag = read_tag(object);
  references.release(object);
  object = tag;
  NEXT();
}
do_GetTagBorrowed:
  top[-1] = read_tag(top[-1]);
  NEXT();
do_ToFloat:
  if (!top[-1].is_integer()) [[unlikely]]
    fail_type();
  top[-1] = Value::of(static_cast<double>(top[-1].integer()));
  NEXT();

  // ---- numbers: a and b are the names that the table's expressions use ----
#define ON_NUMBERS(identifier, type, is_type, get, count, ...) \
  do_##identifier : {                                          \
    top -= (count);                                            \
    const Value x = top[0], y = top[(count)-1];                \
    if (!x.is_type() || !y.is_type()) [[unlikely]]             \
      fail_type();                                             \
    [[maybe_unused]] const type a = x.get(), b = y.get();      \
    push(__VA_ARGS__);                                         \
    NEXT();                                                    \
  }
#define ON_INTEGERS(identifier, ...) \
  ON_NUMBERS(identifier, int64_t, is_integer, integer, 2, __VA_ARGS__)
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, mnemonic, number, result, ...)                            \
  ON_INTEGERS(identifier, computed(kComputes[static_cast<size_t>(vm::Opcode::identifier)], \
                                   Result::result, x, y))
#define TENON_FAST_BINARY(identifier, mnemonic, ...) \
  ON_INTEGERS(identifier, computed(vm::arithmetic::op_##mnemonic, Result::Integer, x, y))
#define TENON_COMPARISON(identifier, mnemonic, number, exchanged, condition, ...) \
  ON_INTEGERS(identifier, Value::of(condition))
#define TENON_FLOAT_BINARY(identifier, mnemonic, row, expression, ...) \
  ON_NUMBERS(identifier, double, is_float, number, 2, of_float(expression))
#define TENON_FLOAT_UNARY(identifier, mnemonic, row, expression, ...) \
  ON_NUMBERS(identifier, double, is_float, number, 1, of_float(expression))
#include "vm/isa/opcodes.def"
}

template Value run_stack<false>(Machine&, uint32_t, std::span<const Value>);
template Value run_stack<true>(Machine&, uint32_t, std::span<const Value>);

}  // namespace tenon::bench
