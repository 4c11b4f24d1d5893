#include "vm/interp/dispatch.h"

#include <cstring>

#include "support/text.h"
#include "vm/interp/slow_path.h"

// Computed gotos: each handler ends in its own indirect jump, which branch predictors like.
#pragma GCC diagnostic ignored "-Wpedantic"

namespace tenon::vm {

#define NEXT()          \
  do {                  \
    ++pc;               \
    goto * pc->handler; \
  } while (0)

// A taken backward jump costs a unit of fuel and looks at the interrupt word.
#define JUMP(distance)                                                                          \
  do {                                                                                          \
    int64_t by = (distance);                                                                    \
    if (by <= 0 && (--m.fuel_ < 0 || (m.attention_.load(std::memory_order_relaxed) &            \
                                      (Machine::kCancelled | Machine::kExpired)))) [[unlikely]] \
      goto stopped;                                                                             \
    pc += by;                                                                                   \
    goto * pc->handler;                                                                         \
  } while (0)

#define SLOW(identifier, function)     \
  handle_##identifier : {              \
    m.pc_ = pc;                        \
    slow_path::function(m, *pc, base); \
    NEXT();                            \
  }

#define BINARY(identifier, expression)                 \
  handle_##identifier##RR : {                          \
    const AnyView &x = base[pc->b], &y = base[pc->c];  \
    if (!is_integer(x) || !is_integer(y)) [[unlikely]] \
      goto not_integer;                                \
    const int64_t a = x.v.i, b = y.v.i;                \
    expression                                         \
  }                                                    \
  handle_##identifier##RI : {                          \
    const AnyView& x = base[pc->b];                    \
    if (!is_integer(x)) [[unlikely]]                   \
      goto not_integer;                                \
    const int64_t a = x.v.i, b = pc->imm;              \
    expression                                         \
  }
#define INTEGER_RESULT(value)      \
  {                                \
    put_int(base[pc->a], (value)); \
    NEXT();                        \
  }
#define CHECKED_RESULT(builtin)         \
  {                                     \
    int64_t r;                          \
    if (builtin(a, b, &r)) [[unlikely]] \
      goto overflow;                    \
    put_int(base[pc->a], r);            \
    NEXT();                             \
  }
#define COMPARISON(identifier, op)                     \
  BINARY(identifier, {                                 \
    put_bool(base[pc->a], a op b);                     \
    NEXT();                                            \
  })                                                   \
  handle_##identifier##IfRR : {                        \
    const AnyView &x = base[pc->b], &y = base[pc->c];  \
    if (!is_integer(x) || !is_integer(y)) [[unlikely]] \
      goto not_integer;                                \
    const bool holds = x.v.i op y.v.i;                 \
    put_bool(base[pc->a], holds);                      \
    if (!holds) JUMP(pc->imm);                         \
    pc += 2;                                           \
    goto * pc->handler;                                \
  }                                                    \
  handle_##identifier##IfRI : {                        \
    const AnyView& x = base[pc->b];                    \
    if (!is_integer(x)) [[unlikely]]                   \
      goto not_integer;                                \
    const bool holds = x.v.i op pc->imm;               \
    put_bool(base[pc->a], holds);                      \
    if (!holds) JUMP(pc->c);                           \
    pc += 2;                                           \
    goto * pc->handler;                                \
  }

namespace {

inline void put_scalar(AnyView& reg, int32_t type, int64_t v) {
  put_words(reg, {static_cast<uint64_t>(type), static_cast<uint64_t>(v)});
}
inline void put_int(AnyView& reg, int64_t v) {
  put_scalar(reg, TypeIndex::Int, v);
}
inline void put_bool(AnyView& reg, bool v) {
  put_scalar(reg, TypeIndex::Bool, v);
}

inline RegisterWords shared(const AnyView& v) {
  RegisterWords w = read_words(v);
  if (is_object(w)) retain(object_of(w));
  return w;
}
inline RegisterWords taken(AnyView& v) {
  RegisterWords w = read_words(v);
  write_words(v, {0, 0});
  return w;
}

// The arguments into a new frame, whose registers are None.
inline void place(const std::vector<ValueRef>& args, AnyView* base, AnyView* frame) {
  for (const ValueRef& ref : args) {
    if (ref.constant) {
      write_words(*frame, shared(*ref.constant));
    } else if (ref.last) {
      write_words(*frame, taken(base[ref.reg]));
    } else {
      write_words(*frame, shared(base[ref.reg]));
    }
    ++frame;
  }
}

// Registers begin..end become None.
inline void clear(AnyView* begin, AnyView* end) {
  for (; begin != end; ++begin) {
    RegisterWords old = taken(*begin);
    if (is_object(old)) [[unlikely]]
      release(object_of(old));
  }
}

}  // namespace

const void* const* Dispatch::handlers() {
  return loop(nullptr);
}
void Dispatch::run(Machine& machine) {
  loop(&machine);
}

const void* const* Dispatch::loop(Machine* machine) {
  static const void* const kHandlers[] = {
#define TENON_OPCODE(identifier, ...) &&handle_##identifier,
#include "vm/isa/opcodes.def"
#undef TENON_OPCODE
#define TENON_FORM(identifier) &&handle_##identifier,
#include "vm/interp/forms.def"
#undef TENON_FORM
  };
  if (!machine) return kHandlers;

  Machine& m = *machine;
  const Op* pc = m.pc_;
  AnyView* base = m.base_;
  const FunctionCode* callee;
  goto * pc->handler;

  // ---- control ----
handle_RetRegister : {
  if (m.attention_.load(std::memory_order_relaxed) & Machine::kInstrumented) [[unlikely]] {
    m.pc_ = pc;
    after_call(m, *m.frame_->pc, &base[pc->a]);
  }
  const RegisterWords value = taken(base[pc->a]);
  const Machine::Frame frame = *m.frame_++;
  clear(base, base + pc->frame);
  pc = frame.pc;
  base = frame.base;
  m.base_ = base;
  m.top_ = base + pc->frame;
  if (pc->a >= 0) {
    put_words(base[pc->a], value);
  } else if (is_object(value)) {
    release(object_of(value));
  }
  NEXT();
}
handle_Ret : {
  AnyView returned = *pc->constant;
  if (returned.is_object()) retain(returned.v.object);
  if (m.attention_.load(std::memory_order_relaxed) & Machine::kInstrumented) [[unlikely]] {
    m.pc_ = pc;
    after_call(m, *m.frame_->pc, &returned);
  }
  const RegisterWords value = read_words(returned);
  const Machine::Frame frame = *m.frame_++;
  clear(base, base + pc->frame);
  pc = frame.pc;
  base = frame.base;
  m.base_ = base;
  m.top_ = base + pc->frame;
  if (pc->a >= 0) {
    put_words(base[pc->a], value);
  } else if (is_object(value)) {
    release(object_of(value));
  }
  NEXT();
}
handle_Exit:
  return nullptr;
handle_Goto:
  JUMP(pc->a);
handle_If : {
  const AnyView& condition = base[pc->a];
  if (!is_integer(condition)) [[unlikely]]
    goto not_integer;
  if (condition.v.i == 0) JUMP(pc->b);
  NEXT();
}
handle_IfEq : {
  const AnyView& a = base[pc->a];
  int64_t b = pc->imm;
  if (pc->b >= 0) {
    if (!is_integer(base[pc->b])) [[unlikely]]
      goto not_integer;
    b = base[pc->b].v.i;
  }
  if (!is_integer(a)) [[unlikely]]
    goto not_integer;
  if (a.v.i != b) JUMP(pc->c);
  NEXT();
}
handle_Switch : {
  const OpExtra& e = *pc->extra;
  const AnyView& value = value_of(e.args[0], base);
  if (!is_integer(value)) [[unlikely]]
    goto not_integer;
  size_t taken = 0;
  for (size_t i = 0; i < e.values.size() && !taken; ++i) {
    if (e.values[i] == value.v.i) taken = i + 1;
  }
  JUMP(e.numbers[taken]);
}
handle_Fatal:
  m.pc_ = pc;
  slow_path::fatal(m, *pc, base);
  SLOW(Check, check)

  // ---- calls ----
handle_Call:
  callee = pc->extra->callee;
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    m.pc_ = pc;
    if (before_call(m, *pc, base, pc->a >= 0 ? &base[pc->a] : nullptr)) NEXT();
  }
  {
    AnyView* const frame = base + pc->frame;
    Machine::Frame* const record = m.frame_ - 1;
    --m.fuel_;
    if (frame + callee->registers > m.register_limit_ || record < m.frame_limit_ || m.fuel_ < 0)
        [[unlikely]] {
      m.pc_ = pc;
      grow_stack(m, frame + callee->registers, record);
    }
    place(pc->extra->args, base, frame);
    record->pc = pc;
    record->base = base;
    m.frame_ = record;
    base = frame;
    m.base_ = frame;
    m.top_ = frame + callee->registers;
    pc = callee->entry;
    goto * pc->handler;
  }
handle_TailCall:
  callee = pc->extra->callee;
  m.pc_ = pc;
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (before_call(m, *pc, base, &base[0])) goto return_register_0;
  }
  --m.fuel_;
  tail_arguments(m, *pc, *callee, base, nullptr);
  pc = callee->entry;
  goto * pc->handler;
handle_CallPacked:
  m.pc_ = pc;
  packed_call(m, *pc, base);
  NEXT();
handle_CallClosure : {
  m.pc_ = pc;
  const OpExtra& e = *pc->extra;
  const AnyView value = value_of(e.args[0], base);
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (before_call(m, *pc, base, pc->a >= 0 ? &base[pc->a] : nullptr)) NEXT();
  }
  callee = closure_code(m, *pc, value);
  if (!callee) {
    call_value(m, *pc, base, value, pc->a >= 0 ? &base[pc->a] : nullptr);
    NEXT();
  }
  AnyView* frame = base + pc->frame;
  Machine::Frame* const record = m.frame_ - 1;
  --m.fuel_;
  if (frame + callee->registers > m.register_limit_ || record < m.frame_limit_ || m.fuel_ < 0)
      [[unlikely]] {
    grow_stack(m, frame + callee->registers, record);
  }
  AnyView* slot = frame;
  const auto* closure = static_cast<const ClosureObj*>(static_cast<FunctionObj*>(value.v.object));
  for (const Any& capture : closure->captures) write_words(*slot++, shared(capture));
  for (size_t i = 1; i < e.args.size(); ++i) {
    const ValueRef& ref = e.args[i];
    write_words(*slot++, shared(value_of(ref, base)));
  }
  record->pc = pc;
  record->base = base;
  m.frame_ = record;
  m.base_ = frame;
  m.top_ = frame + callee->registers;
  for (const ValueRef& ref : e.args) {
    if (ref.last) put(base[ref.reg], AnyView());
  }
  base = frame;
  pc = callee->entry;
  goto * pc->handler;
}
handle_TailCallClosure : {
  m.pc_ = pc;
  const AnyView value = value_of(pc->extra->args[0], base);
  if (m.attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (before_call(m, *pc, base, &base[0])) goto return_register_0;
  }
  callee = closure_code(m, *pc, value);
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
  // The frame has a register: a tail call that has a closure operand, or space that is made here.
  const RegisterWords value = taken(base[0]);
  const Machine::Frame frame = *m.frame_++;
  clear(base, base + pc->frame);
  pc = frame.pc;
  base = frame.base;
  m.base_ = base;
  m.top_ = base + pc->frame;
  if (pc->a >= 0) {
    put_words(base[pc->a], value);
  } else if (is_object(value)) {
    release(object_of(value));
  }
  NEXT();
}

  // ---- registers ----
handle_MoveRegister : {
  put_words(base[pc->a], shared(base[pc->b]));
  NEXT();
}
handle_MoveLast : {
  const RegisterWords value = taken(base[pc->b]);
  put_words(base[pc->a], value);
  NEXT();
}
handle_Move:
handle_LoadConst : {
  put_words(base[pc->a], shared(*pc->constant));
  NEXT();
}
handle_LoadInt:
  put_int(base[pc->a], pc->imm);
  NEXT();
handle_Kill:
  for (int32_t reg : pc->extra->numbers) put(base[reg], AnyView());
  NEXT();
  SLOW(LoadPacked, load_packed)
  SLOW(IsNone, is_none)

  // ---- storage, tensors, shapes, data ----
  SLOW(AllocStorage, alloc_storage)
  SLOW(AllocTensor, alloc_tensor)
  SLOW(AllocTensorReg, alloc_tensor_reg)
  SLOW(NewTensor, new_tensor)
  SLOW(ReshapeTensor, reshape_tensor)
  SLOW(ReshapeTensorReg, reshape_tensor_reg)
  SLOW(ShapeOf, shape_of)
  SLOW(DeviceCopy, device_copy)
  SLOW(ReadElements, read_elements)
  SLOW(MakeTensor, make_tensor)
  SLOW(MatchShape, match_shape)
  SLOW(MatchTensor, match_tensor)
  SLOW(MatchDtype, match_dtype)
  SLOW(MatchPrimValue, match_prim_value)
  SLOW(MakeShape, make_shape)
  SLOW(GetDim, get_dim)
  SLOW(RankOf, rank_of)
  SLOW(AllocAdt, alloc_adt)
  SLOW(AllocTuple, alloc_tuple)
  SLOW(GetField, get_field)
  SLOW(GetTag, get_tag)
  SLOW(AllocClosure, alloc_closure)

  // ---- integers ----
  BINARY(Add,
         INTEGER_RESULT(static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b))))
  BINARY(Sub,
         INTEGER_RESULT(static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b))))
  BINARY(Mul,
         INTEGER_RESULT(static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b))))
  BINARY(AddChecked, CHECKED_RESULT(__builtin_add_overflow))
  BINARY(SubChecked, CHECKED_RESULT(__builtin_sub_overflow))
  BINARY(MulChecked, CHECKED_RESULT(__builtin_mul_overflow))
  BINARY(Min, INTEGER_RESULT(a < b ? a : b))
  BINARY(Max, INTEGER_RESULT(a > b ? a : b))
  COMPARISON(Eq, ==)
  COMPARISON(Ne, !=)
  COMPARISON(Lt, <)
  COMPARISON(Le, <=)
  COMPARISON(Gt, >)
  COMPARISON(Ge, >=)

  // The general forms: two immediates, results that are dropped, the rarer operations.
handle_Add:
handle_Sub:
handle_Mul:
handle_FloorDiv:
handle_FloorMod:
handle_TruncDiv:
handle_TruncMod:
handle_Min:
handle_Max:
handle_And:
handle_Or:
handle_Xor:
handle_Shl:
handle_Shr:
handle_AddChecked:
handle_SubChecked:
handle_MulChecked:
handle_Bcast:
handle_Eq:
handle_Ne:
handle_Lt:
handle_Le:
handle_Gt:
handle_Ge:
  SLOW(BinarySlow, binary)
  SLOW(Not, not_)
  SLOW(Narrow, narrow)
  SLOW(Select, select)

not_integer:
  m.pc_ = pc;
  fail_not_int(m);
overflow:
  m.pc_ = pc;
  fail_overflow(*pc, base);
stopped:
  m.pc_ = pc;
  if (m.fuel_ < 0) fail_fuel(m);
  fail_interrupted(m);
}

}  // namespace tenon::vm
