// The register machine's loop.
#include <cmath>

#include "machine.h"

#pragma GCC diagnostic ignored "-Wpedantic"  // computed gotos

namespace tenon::bench {

// The greatest number of operands of a packed call.
inline constexpr size_t kMaxArguments = 64;

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
Value run_registers(Machine& m, uint32_t called, std::span<const Value> args) {
  static const void* const kHandlers[] = {
#define BENCH_REGISTER_OP(identifier, ...) &&do_##identifier,
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
  Value result{};
  m.counts = {};
  if constexpr (counted) m.executed.assign(m.code.bytes.size(), 0);

  auto reg = [&](const uint8_t*& at) __attribute__((always_inline))->Value& {
    return base[read_unsigned(at)];
  };
  // An operand's value, owned.
  auto value = [&](const uint8_t*& at) __attribute__((always_inline)) {
    const uint64_t word = read_unsigned(at);
    Value v{};
    switch (static_cast<ValueKind>(word & 3)) {
      case kLastUse:
        return taken(base[word >> 2]);
      case kImmediate:
        return Value::of(to_signed(word >> 2));
      case kRegister:
        v = base[word >> 2];
        break;
      case kConstant:
        v = constants[word >> 2];
        break;
    }
    references.retain(v);
    return v;
  };

  for (size_t i = 0; i < args.size(); ++i) {
    base[i] = args[i];
    references.retain(args[i]);
  }
  *frame = {bytes, base, function, &result};
  const uint8_t* pc = bytes + function->entry;
  NEXT();

do_Exit:
  return result;
do_Ret : {
  const Value v = value(pc);
  for (Value *r = base, *end = base + function->slots; r != end; ++r) references.put(*r, Value());
  pc = frame->pc;
  base = frame->base;
  function = frame->function;
  references.put(*frame->result, v);
  --frame;
  NEXT();
}
do_Goto:
  JUMP();
do_If : {
  const Value condition = reg(pc);
  if (!condition.is_integer()) [[unlikely]]
    fail_type();
  if (condition.integer() == 0) JUMP();
  pc += 2;
  NEXT();
}
do_IfEqRR : {
  const Value a = reg(pc), b = reg(pc);
  if (!a.is_integer() || !b.is_integer()) [[unlikely]]
    fail_type();
  if (a.integer() != b.integer()) JUMP();
  pc += 2;
  NEXT();
}
do_IfEqRI : {
  const Value a = reg(pc);
  const int64_t b = read_signed(pc);
  if (!a.is_integer()) [[unlikely]]
    fail_type();
  if (a.integer() != b) JUMP();
  pc += 2;
  NEXT();
}
do_Fatal:
  fail_fatal(constants[read_unsigned(pc)]);
do_Call : {
  Value* const to = &reg(pc);
  const CodeFunction* const callee = &functions[read_unsigned(pc)];
  Value* const registers = base + function->slots;
  if (--fuel < 0 || registers + callee->slots > limit || frame == last_frame) [[unlikely]]
    fail_limit();
  for (uint32_t i = 0; i < callee->params; ++i) registers[i] = value(pc);
  *++frame = {pc, base, function, to};
  base = registers;
  function = callee;
  pc = bytes + callee->entry;
  NEXT();
}
do_TailCall : {
  const CodeFunction* const callee = &functions[read_unsigned(pc)];
  Value* const above = base + function->slots;
  if (--fuel < 0 || above + callee->slots > limit || callee->params > kMaxArguments) [[unlikely]]
    fail_limit();
  alignas(Value) char space[kMaxArguments * sizeof(Value)];
  auto* const arguments = reinterpret_cast<Value*>(space);
  for (uint32_t i = 0; i < callee->params; ++i) arguments[i] = value(pc);
  for (Value* r = base; r != above; ++r) references.put(*r, Value());
  for (uint32_t i = 0; i < callee->params; ++i) base[i] = arguments[i];
  function = callee;
  pc = bytes + callee->entry;
  NEXT();
}
do_TailSelf:
  if (--fuel < 0) [[unlikely]]
    fail_limit();
  for (uint32_t i = function->params; i < function->slots; ++i) references.put(base[i], Value());
  pc = bytes + function->entry;
  NEXT();
do_CallPacked : {
  Value& to = reg(pc);
  const tenon_packed_call callee = m.packed[read_unsigned(pc)];
  const uint64_t count = read_unsigned(pc);
  alignas(Value) char space[kMaxArguments * sizeof(Value)];
  auto* const arguments = reinterpret_cast<Value*>(space);
  if (count > kMaxArguments) [[unlikely]]
    fail_limit();
  const uint8_t* at = pc;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = read_unsigned(pc);
    arguments[i] = (word & 3) <= kLastUse    ? base[word >> 2]
                   : (word & 3) == kConstant ? constants[word >> 2]
                                             : Value::of(to_signed(word >> 2));
  }
  const Value v = call_packed(callee, arguments, count);
  for (; at < pc;) {
    const uint64_t word = read_unsigned(at);
    if ((word & 3) == kLastUse) references.put(base[word >> 2], Value());
  }
  references.put(to, v);
  NEXT();
}
do_Move : {
  Value& to = reg(pc);
  const Value v = reg(pc);
  references.retain(v);
  references.put(to, v);
  NEXT();
}
do_MoveLast : {
  Value& to = reg(pc);
  references.put(to, taken(reg(pc)));
  NEXT();
}
do_LoadConst : {
  Value& to = reg(pc);
  const Value v = constants[read_unsigned(pc)];
  references.retain(v);
  references.put(to, v);
  NEXT();
}
do_LoadInt : {
  Value& to = reg(pc);
  references.put(to, Value::of(read_signed(pc)));
  NEXT();
}
do_Kill:
  references.put(reg(pc), Value());
  NEXT();
do_AllocAdt : {
  Value& to = reg(pc);
  const uint64_t tag = read_unsigned(pc), count = read_unsigned(pc);
  CellObj* const cell = new_cell(tag, count);
  for (uint64_t i = 0; i < count; ++i) field_of(cell, i) = value(pc);
  references.put(to, of_cell(cell));
  NEXT();
}
do_GetField : {
  Value& to = reg(pc);
  const uint64_t word = read_unsigned(pc);
  Value& object = base[word >> 1];
  const Value field = read_field(object, read_unsigned(pc));
  references.retain(field);
  if (word & 1) references.release(taken(object));
  references.put(to, field);
  NEXT();
}
do_GetTag : {
  Value& to = reg(pc);
  const uint64_t word = read_unsigned(pc);
  Value& object = base[word >> 1];
  const Value tag = read_tag(object);
  if (word & 1) references.release(taken(object));
  references.put(to, tag);
  NEXT();
}
do_ToFloat : {
  Value& to = reg(pc);
  const Value a = reg(pc);
  if (!a.is_integer()) [[unlikely]]
    fail_type();
  references.put(to, Value::of(static_cast<double>(a.integer())));
  NEXT();
}

// ---- numbers: a and b are the names that the table's expressions use ----
#define ON_NUMBERS(label, type, is_type, get, second, ...) \
  label : {                                                \
    Value& to = reg(pc);                                   \
    const Value x = reg(pc), y = second;                   \
    if (!x.is_type() || !y.is_type()) [[unlikely]]         \
      fail_type();                                         \
    [[maybe_unused]] const type a = x.get(), b = y.get();  \
    references.put(to, __VA_ARGS__);                       \
    NEXT();                                                \
  }
#define ON_INTEGERS(identifier, ...)                                                        \
  ON_NUMBERS(do_##identifier##RR, int64_t, is_integer, integer, reg(pc), __VA_ARGS__)       \
  ON_NUMBERS(do_##identifier##RI, int64_t, is_integer, integer, Value::of(read_signed(pc)), \
             __VA_ARGS__)
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, mnemonic, number, result, ...)                            \
  ON_INTEGERS(identifier, computed(kComputes[static_cast<size_t>(vm::Opcode::identifier)], \
                                   Result::result, x, y))
#define TENON_FAST_BINARY(identifier, mnemonic, ...) \
  ON_INTEGERS(identifier, computed(vm::arithmetic::op_##mnemonic, Result::Integer, x, y))
#define TENON_COMPARISON(identifier, mnemonic, number, exchanged, condition, ...) \
  ON_INTEGERS(identifier, Value::of(condition))
#define TENON_FLOAT_BINARY(identifier, mnemonic, row, expression, ...)                     \
  ON_NUMBERS(do_##identifier##RR, double, is_float, number, reg(pc), of_float(expression)) \
  ON_NUMBERS(do_##identifier##RC, double, is_float, number, constants[read_unsigned(pc)],  \
             of_float(expression))
#define TENON_FLOAT_UNARY(identifier, mnemonic, row, expression, ...) \
  ON_NUMBERS(do_##identifier, double, is_float, number, x, of_float(expression))
#include "vm/isa/opcodes.def"
}

template Value run_registers<false>(Machine&, uint32_t, std::span<const Value>);
template Value run_registers<true>(Machine&, uint32_t, std::span<const Value>);

}  // namespace tenon::bench
