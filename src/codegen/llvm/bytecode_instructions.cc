// Which code an instruction becomes; moves and branches.
#include <set>

#include "codegen/llvm/bytecode_function.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::Instruction;
using vm::OpClass;
using vm::Opcode;

void FunctionTranslator::instruction(const Instruction& in) {
  switch (in.info->op_class) {
    case OpClass::Return:
      return return_from(in);
    case OpClass::Goto:
      return go(flow_.block_at(in.arg(vm::operand(Opcode::Goto, "target"))), true);
    case OpClass::If:
      return if_true(in);
    case OpClass::IfEq:
      return if_equal(in);
    case OpClass::Switch:
      return switch_on(in);
    case OpClass::Move:
      return move(in);
    case OpClass::LoadInt:
      return define(in.arg(0), Kind::Int, b_.getInt64(static_cast<uint64_t>(in.arg(1).value())));
    case OpClass::Concurrent:
      return concurrent(in);
    case OpClass::Kill:
      for (const vm::Word word : in.list()) {
        drop_old(Arg(word).index());
        clear(Arg(word).index());
      }
      return;
    case OpClass::Binary:
    case OpClass::Comparison:
      if (!binary(in) && !ended_) run_in_machine(in);
      return;
    case OpClass::Call:
      if (in.opcode() == Opcode::Call) return call(in);
      if (in.opcode() == Opcode::TailCall) return tail_call(in);
      if (in.opcode() == Opcode::CallClosure) return call_closure(in);
      if (in.opcode() == Opcode::TailCallClosure) return tail_call_closure(in);
      return run_in_machine(in);
    case OpClass::Plain:
      if (!plain(in) && !ended_) run_in_machine(in);
      return;
    case OpClass::Unpack:
      if (in.opcode() != Opcode::TakeFields || !take_fields(in)) run_in_machine(in);
      return;
    case OpClass::Match:
      if (in.opcode() != Opcode::MatchTensor || !match_tensor(in)) run_in_machine(in);
      return;
    default:
      return run_in_machine(in);
  }
}

void FunctionTranslator::move(const Instruction& in) {
  const Arg destination = in.arg(0), source = in.arg(1);
  const bool is_last = source.is(ArgKind::LastUse);
  const Kind kind = kind_of_operand(source);
  if (destination.is_none()) {
    if (!is_last) return;
    drop_old(source.index());
    return clear(source.index());
  }
  if (source.is_register() && source.index() == destination.index()) return;
  if (is_number(kind)) {
    llvm::Value* number = payload(source, kind);
    if (is_last) clear(source.index());
    return define(destination.index(), kind, number);
  }
  const Words words = take(source, is_last);
  if (source.is_none() || kind == Kind::None) {
    drop_old(destination.index());
    return clear(destination.index());
  }
  define(destination.index(), words);
}

void FunctionTranslator::if_true(const Instruction& in) {
  const Arg condition = in.arg(vm::operand(Opcode::If, "cond"));
  const uint32_t otherwise = flow_.block_at(in.arg(vm::operand(Opcode::If, "otherwise")));
  if (!condition.is_register()) {
    if (condition.value() == 0) return go(otherwise, true);
    return go(flow_.block_beginning(at_ + 1), false);
  }
  llvm::Value* value = integer_or_boolean(condition);
  if (ended_) return;
  branch(writing() ? b_.CreateICmpNE(value, b_.getInt64(0)) : nullptr, otherwise);
}

void FunctionTranslator::if_equal(const Instruction& in) {
  const Arg a = in.arg(vm::operand(Opcode::IfEq, "a")), b = in.arg(vm::operand(Opcode::IfEq, "b"));
  const uint32_t otherwise = flow_.block_at(in.arg(vm::operand(Opcode::IfEq, "otherwise")));
  llvm::Value* left = integer_or_boolean(a);
  if (ended_) return;
  llvm::Value* right = integer_or_boolean(b);
  if (ended_) return;
  branch(writing() ? b_.CreateICmpEQ(left, right) : nullptr, otherwise);
}

void FunctionTranslator::switch_on(const Instruction& in) {
  llvm::Value* value = integer_or_boolean(in.arg(vm::operand(Opcode::Switch, "value")));
  if (ended_) return;
  const auto cases = in.list();
  llvm::BasicBlock* const otherwise =
      edge(flow_.block_at(in.arg(vm::operand(Opcode::Switch, "otherwise"))), true);
  llvm::SwitchInst* made = nullptr;
  if (writing()) {
    made = b_.CreateSwitch(value, otherwise, static_cast<unsigned>(cases.size() / 2));
  }
  std::set<int64_t> seen;
  for (size_t i = 0; i < cases.size(); i += 2) {
    const int64_t number = Arg(cases[i]).value();
    if (!seen.insert(number).second) continue;  // the first case counts
    llvm::BasicBlock* const to = edge(flow_.block_at(Arg(cases[i + 1])), true);
    if (made) made->addCase(b_.getInt64(static_cast<uint64_t>(number)), to);
  }
  ended_ = true;
}

bool FunctionTranslator::plain(const Instruction& in) {
  switch (in.opcode()) {
    case Opcode::GetField:
    case Opcode::BorrowField:
      return get_field(in);
    case Opcode::GetTag:
      return get_tag(in);
    case Opcode::ArraySize:
      return array_size(in);
    case Opcode::ArraySet:
      return array_set(in);
    case Opcode::ArrayPush:
      return array_push(in);
    case Opcode::ReuseAdt:
      return reuse_adt(in);
    case Opcode::Select:
      return select(in);
    default:
      return convert(in);
  }
}

}  // namespace tenon::codegen
