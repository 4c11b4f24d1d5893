// Bytecode as the stack machine's code, following a StackPlan.
#include <algorithm>

#include "stack_plan.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/isa/operand_index.h"

namespace tenon::bench {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::operand;

// The instruction of the same name, for operations on numbers.
StackOp number_operation(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, ...) \
  case Opcode::identifier:            \
    return StackOp::identifier;
#define TENON_COMPARISON TENON_BINARY
#define TENON_FLOAT_BINARY TENON_BINARY
#define TENON_FLOAT_UNARY TENON_BINARY
#include "vm/isa/opcodes.def"
    case Opcode::ToFloat:
      return StackOp::ToFloat;
    default:
      return StackOp::Exit;
  }
}

// Whether the instruction only reads its operands, and so can do without references to them.
bool only_reads(Opcode opcode) {
  switch (opcode) {
    case Opcode::CallPacked:
    case Opcode::GetField:
    case Opcode::GetTag:
    case Opcode::If:
    case Opcode::IfEq:
      return true;
    default:
      return number_operation(opcode) != StackOp::Exit;
  }
}

class Lowering {
 public:
  Lowering(Code& code, uint32_t function, Operands operands)
      : out_(code, function),
        borrows_(operands == Operands::Borrowed),
        function_(code.functions[function]),
        steps_(read_steps(code.unit->functions[function])),
        plan_(plan_stack(steps_, code.unit->functions[function].register_count)),
        local_(code.unit->functions[function].register_count, -1) {
    for (; locals_ < static_cast<int32_t>(function_.params); ++locals_) {
      local_[static_cast<size_t>(locals_)] = locals_;
    }
    for (size_t i = 0; i < steps_.size(); ++i) step(i);
    out_.finish();
    function_.slots = static_cast<uint32_t>(locals_);
  }

 private:
  void step(size_t i);
  void push(StackStep::Push push);
  void instruction(size_t i);
  void result(size_t i);
  // Whether the operand is on the stack without a reference.
  bool borrowed(size_t step, size_t operand) const;
  void pushed(int count);
  void local(StackOp op, uint32_t reg);

  CodeWriter out_;
  bool borrows_;
  CodeFunction& function_;
  std::vector<Step> steps_;
  std::vector<StackStep> plan_;
  std::vector<int32_t> local_;  // of each register, or -1 if it needs none so far
  int32_t locals_ = 0;
  int depth_ = 0;
};

void Lowering::pushed(int count) {
  depth_ += count;
  function_.operands = std::max(function_.operands, static_cast<uint32_t>(depth_));
}

void Lowering::local(StackOp op, uint32_t reg) {
  if (local_[reg] < 0) local_[reg] = locals_++;
  out_.op(op);
  out_.number(static_cast<uint64_t>(local_[reg]));
}

bool Lowering::borrowed(size_t step, size_t operand) const {
  const StackStep& user = plan_[step];
  if (!borrows_ || !only_reads(user.opcode)) return false;
  const int32_t from = user.kept_by[operand];
  if (from >= 0) return plan_[static_cast<size_t>(from)].in_local;
  return user.reads[operand].is(ArgKind::Register);
}

void Lowering::push(StackStep::Push push) {
  const Arg arg = plan_[push.step].reads[push.operand];
  if (arg.is_register()) {
    local(borrowed(push.step, push.operand) ? StackOp::GetLocalBorrowed
          : arg.is(ArgKind::LastUse)        ? StackOp::TakeLocal
                                            : StackOp::GetLocal,
          arg.index());
  } else if (arg.is(ArgKind::Immediate)) {
    out_.op(StackOp::Int);
    out_.integer(arg.value());
  } else if (arg.is(ArgKind::Constant)) {
    out_.op(StackOp::Const);
    out_.number(arg);
  } else {
    fail_unsupported(steps_[push.step].instruction);
  }
  pushed(1);
}

// Stores the result where it is used.
void Lowering::result(size_t i) {
  const Step& step = steps_[i];
  const StackStep& plan = plan_[i];
  if (!step.instruction.info->has_result()) return;
  pushed(1);
  if (plan.stays && plan.in_local) {
    // The first operand that the value stays for: whether that needs a reference.
    bool without = false;
    for (size_t user = i + 1; user < plan_.size() && !without; ++user) {
      for (size_t j = 0; j < plan_[user].kept_by.size(); ++j) {
        if (plan_[user].kept_by[j] == static_cast<int32_t>(i)) without = borrowed(user, j);
      }
    }
    return local(without ? StackOp::TeeLocalBorrowed : StackOp::TeeLocal,
                 static_cast<uint32_t>(step.writes));
  }
  if (plan.stays) return;
  pushed(-1);
  if (plan.in_local) return local(StackOp::SetLocal, static_cast<uint32_t>(step.writes));
  out_.op(StackOp::Drop);
}

void Lowering::step(size_t i) {
  out_.start_step();
  for (const StackStep::Push p : plan_[i].pushes) push(p);
  instruction(i);
  depth_ -= static_cast<int>(plan_[i].reads.size());
  result(i);
}

void Lowering::instruction(size_t i) {
  const Step& step = steps_[i];
  const StackStep& plan = plan_[i];
  const vm::Instruction& in = step.instruction;
  switch (plan.opcode) {
    case Opcode::Ret:
      return out_.op(StackOp::Ret);
    case Opcode::Goto:
      out_.op(StackOp::Goto);
      return out_.jump(step.target);
    case Opcode::If:
      out_.op(StackOp::If);
      return out_.jump(step.target);
    case Opcode::IfEq:
      out_.op(StackOp::IfEq);
      return out_.jump(step.target);
    case Opcode::Fatal:
      out_.op(StackOp::Fatal);
      return out_.number(in.arg(operand(Opcode::Fatal, "message")));
    case Opcode::Call:
      out_.op(StackOp::Call);
      return out_.number(in.arg(operand(Opcode::Call, "callee")));
    case Opcode::TailCall:
      out_.op(StackOp::TailCall);
      return out_.number(in.arg(operand(Opcode::TailCall, "callee")));
    case Opcode::CallPacked: {
      uint64_t owned = 0;
      const size_t count = plan.reads.size();
      if (count > 63) fail_unsupported(in);
      for (size_t j = 0; j < count; ++j) owned |= uint64_t{!borrowed(i, j)} << j;
      const bool all = owned == (uint64_t{1} << count) - 1;
      out_.op(all ? StackOp::CallPacked : StackOp::CallPackedBorrowed);
      out_.number(in.arg(operand(Opcode::CallPacked, "callee")));
      out_.number(count);
      if (!all) out_.number(owned);
      return;
    }
    case Opcode::Move:
      return;
    case Opcode::LoadConst:
      out_.op(StackOp::Const);
      return out_.number(in.arg(operand(Opcode::LoadConst, "constant")));
    case Opcode::LoadInt:
      out_.op(StackOp::Int);
      return out_.integer(in.arg(operand(Opcode::LoadInt, "value")).value());
    case Opcode::Kill:
      for (const vm::Word word : in.list()) local(StackOp::ClearLocal, Arg(word).index());
      return;
    case Opcode::AllocAdt:
      out_.op(StackOp::AllocAdt);
      out_.number(static_cast<uint64_t>(in.arg(operand(Opcode::AllocAdt, "tag")).value()));
      return out_.number(plan.reads.size());
    case Opcode::GetField:
      out_.op(borrowed(i, 0) ? StackOp::GetFieldBorrowed : StackOp::GetField);
      return out_.number(field_index(in));
    case Opcode::GetTag:
      return out_.op(borrowed(i, 0) ? StackOp::GetTagBorrowed : StackOp::GetTag);
    case Opcode::ToFloat:
      check_is_f64(in);
      return out_.op(StackOp::ToFloat);
    default:
      if (number_operation(plan.opcode) == StackOp::Exit) fail_unsupported(in);
      return out_.op(number_operation(plan.opcode));
  }
}

}  // namespace

Code lower_to_stack(const vm::Unit& unit, Operands operands) {
  Code code{&unit, std::vector<CodeFunction>(unit.functions.size())};
  for (uint32_t i = 0; i < unit.functions.size(); ++i) Lowering(code, i, operands);
  return code;
}

}  // namespace tenon::bench
