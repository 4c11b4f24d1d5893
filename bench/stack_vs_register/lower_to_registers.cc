// Bytecode as the register machine's code: instruction by instruction.
#include "flow.h"
#include "support/text.h"
#include "vm/isa/operand_index.h"

namespace tenon::bench {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::operand;

// The forms of an operation on two registers, and on a register and a written number.
struct Forms {
  RegisterOp registers, written;
};
Forms forms_of(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, ...) \
  case Opcode::identifier:            \
    return {RegisterOp::identifier##RR, RegisterOp::identifier##RI};
#define TENON_COMPARISON TENON_BINARY
#define TENON_FLOAT_BINARY(identifier, ...) \
  case Opcode::identifier:                  \
    return {RegisterOp::identifier##RR, RegisterOp::identifier##RC};
#define TENON_FLOAT_UNARY(identifier, ...) \
  case Opcode::identifier:                 \
    return {RegisterOp::identifier, RegisterOp::identifier};
#include "vm/isa/opcodes.def"
    default:
      return {};
  }
}

class Lowering {
 public:
  Lowering(Code& code, uint32_t function)
      : out_(code, function),
        function_(function),
        scratch_(code.unit->functions[function].register_count) {
    code.functions[function].slots = scratch_ + 1;
    for (const Step& step : read_steps(code.unit->functions[function])) {
      out_.start_step();
      instruction(step);
    }
    out_.finish();
  }

 private:
  void instruction(const Step& step);
  void binary(const Step& step);
  void call(const Step& step);
  void begin(RegisterOp op, const Step& step) {
    out_.op(op);
    out_.number(step.writes >= 0 ? static_cast<uint32_t>(step.writes) : scratch_);
  }
  void value(Arg arg);
  void values(const Step& step) {
    for (const Arg a : step.reads) value(a);
  }
  // The register that an operand is in, or is loaded to.
  uint32_t in_register(Arg arg);

  CodeWriter out_;
  uint32_t function_;
  uint32_t scratch_;
};

void Lowering::value(Arg arg) {
  switch (arg.kind()) {
    case ArgKind::Register:
      return out_.number(uint64_t{arg.index()} << 2 | kRegister);
    case ArgKind::LastUse:
      return out_.number(uint64_t{arg.index()} << 2 | kLastUse);
    case ArgKind::Constant:
      return out_.number(uint64_t{arg.index()} << 2 | kConstant);
    default:
      return out_.number(from_signed(arg.value()) << 2 | kImmediate);
  }
}

uint32_t Lowering::in_register(Arg arg) {
  if (arg.is_register()) return arg.index();
  const bool constant = arg.is(ArgKind::Constant);
  out_.op(constant ? RegisterOp::LoadConst : RegisterOp::LoadInt);
  out_.number(scratch_);
  constant ? out_.number(arg) : out_.integer(arg.value());
  return scratch_;
}

void Lowering::binary(const Step& step) {
  Opcode opcode = step.instruction.opcode();
  Arg a = step.reads[0];
  if (step.reads.size() == 1) {
    const uint32_t in = in_register(a);
    begin(forms_of(opcode).registers, step);
    return out_.number(in);
  }
  Arg b = step.reads[1];
  if (!a.is_register() && b.is_register() && exchanged(opcode) != Opcode::None) {
    opcode = exchanged(opcode);
    std::swap(a, b);
  }
  const uint32_t in = in_register(a);
  const Forms forms = forms_of(opcode);
  begin(b.is_register() ? forms.registers : forms.written, step);
  out_.number(in);
  b.is(ArgKind::Immediate) ? out_.integer(b.value()) : out_.number(b);
}

void Lowering::call(const Step& step) {
  const vm::Instruction& in = step.instruction;
  if (in.opcode() == Opcode::CallPacked) {
    begin(RegisterOp::CallPacked, step);
    out_.number(in.arg(operand(Opcode::CallPacked, "callee")));
    out_.number(step.reads.size());
    return values(step);
  }
  if (in.opcode() == Opcode::Call) {
    begin(RegisterOp::Call, step);
    out_.number(in.arg(operand(Opcode::Call, "callee")));
    return values(step);
  }
  const Arg callee = in.arg(operand(Opcode::TailCall, "callee"));
  bool in_place = callee.index() == function_;
  for (uint32_t i = 0; i < step.reads.size(); ++i) {
    in_place = in_place && step.reads[i].is_register() && step.reads[i].index() == i;
  }
  if (in_place) return out_.op(RegisterOp::TailSelf);
  out_.op(RegisterOp::TailCall);
  out_.number(callee);
  values(step);
}

void Lowering::instruction(const Step& step) {
  const vm::Instruction& in = step.instruction;
  switch (in.opcode()) {
    case Opcode::Ret:
      out_.op(RegisterOp::Ret);
      return value(step.reads[0]);
    case Opcode::Goto:
      out_.op(RegisterOp::Goto);
      return out_.jump(step.target);
    case Opcode::If: {
      const uint32_t condition = in_register(step.reads[0]);
      out_.op(RegisterOp::If);
      out_.number(condition);
      return out_.jump(step.target);
    }
    case Opcode::IfEq: {
      const uint32_t a = in_register(step.reads[0]);
      const Arg b = step.reads[1];
      out_.op(b.is_register() ? RegisterOp::IfEqRR : RegisterOp::IfEqRI);
      out_.number(a);
      b.is_register() ? out_.number(b) : out_.integer(b.value());
      return out_.jump(step.target);
    }
    case Opcode::Fatal:
      out_.op(RegisterOp::Fatal);
      return out_.number(in.arg(operand(Opcode::Fatal, "message")));
    case Opcode::Call:
    case Opcode::TailCall:
    case Opcode::CallPacked:
      return call(step);
    case Opcode::Move: {
      const Arg source = step.reads[0];
      if (!source.is_register()) fail_unsupported(in);
      begin(source.is(ArgKind::LastUse) ? RegisterOp::MoveLast : RegisterOp::Move, step);
      return out_.number(source);
    }
    case Opcode::LoadConst:
      begin(RegisterOp::LoadConst, step);
      return out_.number(in.arg(operand(Opcode::LoadConst, "constant")));
    case Opcode::LoadInt:
      begin(RegisterOp::LoadInt, step);
      return out_.integer(in.arg(operand(Opcode::LoadInt, "value")).value());
    case Opcode::Kill:
      for (const vm::Word word : in.list()) {
        out_.op(RegisterOp::Kill);
        out_.number(Arg(word));
      }
      return;
    case Opcode::AllocAdt:
      begin(RegisterOp::AllocAdt, step);
      out_.number(static_cast<uint64_t>(in.arg(operand(Opcode::AllocAdt, "tag")).value()));
      out_.number(step.reads.size());
      return values(step);
    case Opcode::GetField:
    case Opcode::GetTag: {
      const Arg object = step.reads[0];
      if (!object.is_register()) fail_unsupported(in);
      begin(in.opcode() == Opcode::GetTag ? RegisterOp::GetTag : RegisterOp::GetField, step);
      out_.number(uint64_t{object.index()} << 1 | object.is(ArgKind::LastUse));
      if (in.opcode() == Opcode::GetField) out_.number(field_index(in));
      return;
    }
    case Opcode::ToFloat: {
      check_is_f64(in);
      const uint32_t a = in_register(step.reads[0]);
      begin(RegisterOp::ToFloat, step);
      return out_.number(a);
    }
    default:
      if (forms_of(in.opcode()).registers == RegisterOp::Exit) fail_unsupported(in);
      return binary(step);
  }
}

}  // namespace

Code lower_to_registers(const vm::Unit& unit) {
  Code code{&unit, std::vector<CodeFunction>(unit.functions.size())};
  for (uint32_t i = 0; i < unit.functions.size(); ++i) Lowering(code, i);
  return code;
}

}  // namespace tenon::bench
