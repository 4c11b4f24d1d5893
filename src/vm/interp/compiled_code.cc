#include "vm/interp/compiled_code.h"

#include <cstddef>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include "object/array.h"
#include "object/cell.h"
#include "object/tensor.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm {
namespace {

// The layouts that compiled code relies on. Objects aren't standard-layout types, because they
// derive from one with fields; GCC and Clang define offsetof for them.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
using Layout = CodeLayout;
static_assert(sizeof(void*) != 8 ||
              (offsetof(MachineState, runtime_) == Layout::kRuntime &&
               offsetof(MachineState, fuel_) == Layout::kFuel &&
               offsetof(MachineState, register_limit_) == Layout::kRegisterLimit &&
               offsetof(MachineState, frame_limit_) == Layout::kFrameLimit &&
               offsetof(MachineState, attention_) == Layout::kAttention &&
               offsetof(MachineState, value_) == Layout::kValue &&
               offsetof(MachineState, entry_) == Layout::kEntry &&
               offsetof(MachineState, running_) == Layout::kRunning &&
               offsetof(MachineState, in_force_.account) == Layout::kAccount &&
               offsetof(MachineState::Frame, pc) == Layout::kFrameResume &&
               offsetof(MachineState::Frame, base) == Layout::kFrameBase &&
               sizeof(MachineState::Frame) == Layout::kFrameBytes &&
               offsetof(FunctionObj, call) == Layout::kFunctionCall &&
               offsetof(ClosureObj, program) == Layout::kClosureProgram &&
               offsetof(ClosureObj, account) == Layout::kClosureAccount &&
               offsetof(ClosureObj, code) == Layout::kClosureCode &&
               offsetof(ClosureObj, size) == Layout::kClosureSize &&
               sizeof(ClosureObj) == Layout::kClosureCaptures &&
               offsetof(FunctionCode, index) == Layout::kCodeIndex &&
               offsetof(FunctionCode, closure_params) == Layout::kCodeClosureParams &&
               offsetof(FunctionCode, registers) == Layout::kCodeRegisters));
static_assert(sizeof(AnyView) == Layout::kRegisterBytes);
static_assert(offsetof(Object, counts) == Layout::kCounts &&
              Object::kSaturated == Layout::kSaturated &&
              Object::kCountsOfNew == Layout::kCountsOfNew &&
              offsetof(CellObj, tag) == Layout::kCellTag &&
              offsetof(CellObj, size) == Layout::kCellSize &&
              sizeof(CellObj) == Layout::kCellFields &&
              offsetof(ArrayObj, size) == Layout::kArraySize &&
              offsetof(ArrayObj, capacity) == Layout::kArrayCapacity &&
              sizeof(ArrayObj) == Layout::kArrayFields &&
              offsetof(TensorObj, dl.ndim) == Layout::kTensorRankAndDtype &&
              offsetof(TensorObj, dl.dtype) == Layout::kTensorRankAndDtype + 4 &&
              offsetof(TensorObj, dl.shape) == Layout::kTensorShape);

CodeValue taken(Any&& value) {
  const RegisterWords words = words_of(value.leak());
  return {words.head, words.payload};
}

[[noreturn, gnu::cold, gnu::noinline]] void not_run_here() {
  TENON_ASSERT(false, "an instruction that compiled code runs itself");
  __builtin_unreachable();
}

}  // namespace

Machine& CompiledCode::arrive(void* state, void* base, void* frame, int64_t fuel, uint64_t op) {
  auto& m = static_cast<Machine&>(*static_cast<MachineState*>(state));
  m.pc_ = m.ops_ + op;
  m.base_ = static_cast<AnyView*>(base);
  m.top_ = &at(m.base_, m.pc_->frame);
  m.frame_ = static_cast<Machine::Frame*>(frame);
  m.fuel_ = fuel;
  return m;
}

void CompiledCode::fail(Machine& m) {
  m.failure_ = std::current_exception();
}

template <auto kBody>
CodeExit CompiledCode::guarded(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                               uint64_t extra) noexcept {
  Machine& m = arrive(state, base, frame, fuel, op);
  try {
    if constexpr (std::is_void_v<decltype(kBody(m, *m.pc_, m.base_, extra))>) {
      kBody(m, *m.pc_, m.base_, extra);
      return CodeExit::Returned;
    } else {
      return kBody(m, *m.pc_, m.base_, extra);
    }
  } catch (...) {
    fail(m);
    return CodeExit::Failed;
  }
}

// Each case ends with a call, so that this function needs no native frame.
void CompiledCode::run_instruction(Machine& m, const Op& op, AnyView* base, uint64_t opcode) {
#define RUN_Plain(mnemonic) return slow_path::op_##mnemonic(m, op, base)
#define RUN_Function RUN_Plain
#define RUN_Unpack RUN_Plain
#define RUN_Match RUN_Plain
#define RUN_Binary(mnemonic) return slow_path::binary(m, op, base)
#define RUN_Call(mnemonic) return Dispatch::packed_call(m, op, base)
#define RUN_IN_CODE(mnemonic) break
#define RUN_Comparison RUN_IN_CODE
#define RUN_Return RUN_IN_CODE
#define RUN_Goto RUN_IN_CODE
#define RUN_If RUN_IN_CODE
#define RUN_IfEq RUN_IN_CODE
#define RUN_Switch RUN_IN_CODE
#define RUN_Move RUN_IN_CODE
#define RUN_LoadInt RUN_IN_CODE
#define RUN_Kill RUN_IN_CODE
#define RUN_Concurrent(mnemonic) return Dispatch::concurrent_calls(m, op, base)
  switch (static_cast<Opcode>(opcode)) {
#define TENON_OPCODE(identifier, mnemonic, number, op_class, ...) \
  case Opcode::identifier:                                        \
    RUN_##op_class(mnemonic);
#include "vm/isa/opcodes.def"
    case Opcode::None:
      break;
  }
  not_run_here();
}

void CompiledCode::attend(Machine& m, const Op&, AnyView*, uint64_t) {
  if (m.fuel_ < 0) Dispatch::fail_fuel(m);
  Dispatch::stop_if_asked(m);
}

void CompiledCode::charge_call(Machine& m, const Op&, AnyView* base, uint64_t room) {
  Dispatch::stop_if_asked(m);
  --m.fuel_;
  Dispatch::grow_stack(m, base + room / kRegisterBytes, m.frame_ - (room & kNewFrame));
}

CodePiece CompiledCode::piece_of(const Machine& m, const FunctionCode& function) {
  return m.running_->compiled()->functions[function.index];
}

CodeExit CompiledCode::call_closure(Machine& m, const Op& op, AnyView* base, uint64_t) {
  const AnyView closure = value_of(op.as<Opcode::CallClosure>().args[kClosure], base);
  Dispatch::stop_if_asked(m);
  if (const FunctionCode* const callee = Dispatch::closure_code(m, op, closure)) {
    Dispatch::place_closure(m, op, base, *callee, closure);
    release_last_uses(op.as<OpClass::Call>(), base);
    m.entry_ = piece_of(m, *callee);
    return CodeExit::Left;
  }
  AnyView result;
  Dispatch::call_value(m, op, base, closure, &result);
  m.value_ = taken(Any::adopt(result));
  return CodeExit::Returned;
}

CodeExit CompiledCode::tail_call_closure(Machine& m, const Op& op, AnyView* base, uint64_t) {
  const AnyView closure = value_of(op.as<Opcode::TailCallClosure>().args[kClosure], base);
  Dispatch::stop_if_asked(m);
  if (const FunctionCode* const callee = Dispatch::closure_code(m, op, closure)) {
    --m.fuel_;
    Dispatch::tail_arguments(m, op, *callee, base, &closure);
    m.entry_ = piece_of(m, *callee);
    return CodeExit::Left;
  }
  AnyView result;
  Dispatch::call_value(m, op, base, closure, &result);
  for (AnyView* r = base; r != m.top_; ++r) put(*r, AnyView());
  m.value_ = taken(Any::adopt(result));
  return CodeExit::Returned;
}

CodeExit CompiledCode::released(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                                uint64_t object) noexcept {
  Machine& m = arrive(state, base, frame, fuel, op);
  detail::release_rare(reinterpret_cast<Object*>(object), m.value_.head);
  return CodeExit::Returned;
}

CodeExit CompiledCode::constant(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                                uint64_t index) noexcept {
  Machine& m = arrive(state, base, frame, fuel, op);
  m.value_ = taken(Any(m.running_->unit().constants[index].value));
  return CodeExit::Returned;
}

CodeExit CompiledCode::clear(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                             uint64_t) noexcept {
  Machine& m = arrive(state, base, frame, fuel, op);
  for (AnyView* r = m.base_; r != m.top_; ++r) put(*r, AnyView());
  return CodeExit::Returned;
}

CodeExit CompiledCode::leave(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                             uint64_t) noexcept {
  arrive(state, base, frame, fuel, op);
  return CodeExit::Left;
}

// Turns the frames of compiled code into those of bytecode.
void CompiledCode::to_bytecode(Machine& m, const Machine::Frame* entry) {
  for (Machine::Frame* frame = m.frame_; frame <= entry; ++frame) {
    uint32_t op;
    std::memcpy(&op, reinterpret_cast<const char*>(frame->pc) - kCodePrefixBytes, sizeof op);
    frame->pc = m.ops_ + op;
  }
}

void CompiledCode::run(Machine& m, const CodeTable& table, const FunctionCode& function) {
  static constexpr CodeRuntime kRuntime = {
      .run = guarded<run_instruction>,
      .released = released,
      .attend = guarded<attend>,
      .charge_call = guarded<charge_call>,
      .call_closure = guarded<call_closure>,
      .tail_call_closure = guarded<tail_call_closure>,
      .constant = constant,
      .clear = clear,
      .leave = leave,
      .closure_call = ClosureObj::call_packed,
  };
  Machine::Frame* const entry = m.frame_;
  const Op* const outer_ops = std::exchange(m.ops_, m.running_->decoded().ops.data());
  m.runtime_ = &kRuntime;
  entry->pc = reinterpret_cast<const Op*>(table.exit);
  const auto exit = static_cast<CodeExit>(
      table.enter(static_cast<MachineState*>(&m), m.base_, entry, m.fuel_, piece_of(m, function)));
  if (exit == CodeExit::Returned) {
    write_words(*entry->base, {m.value_.head, m.value_.payload});
  } else {
    to_bytecode(m, entry);
  }
  m.ops_ = outer_ops;
  if (exit == CodeExit::Failed) std::rethrow_exception(std::exchange(m.failure_, nullptr));
  if (exit == CodeExit::Left) Dispatch::run(m);
}

}  // namespace tenon::vm
