#include "vm/interp/decode.h"

#include "support/error.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm {
namespace {

int32_t destination(Arg a) {
  return a.is_none() ? -1 : static_cast<int32_t>(a.index());
}

struct Forms {
  Opcode opcode;
  Handler rr, ri;
};
constexpr Forms kForms[] = {
    {Opcode::Add, Handler::AddRR, Handler::AddRI},
    {Opcode::Sub, Handler::SubRR, Handler::SubRI},
    {Opcode::Mul, Handler::MulRR, Handler::MulRI},
    {Opcode::AddChecked, Handler::AddCheckedRR, Handler::AddCheckedRI},
    {Opcode::SubChecked, Handler::SubCheckedRR, Handler::SubCheckedRI},
    {Opcode::MulChecked, Handler::MulCheckedRR, Handler::MulCheckedRI},
    {Opcode::Min, Handler::MinRR, Handler::MinRI},
    {Opcode::Max, Handler::MaxRR, Handler::MaxRI},
    {Opcode::Eq, Handler::EqRR, Handler::EqRI},
    {Opcode::Ne, Handler::NeRR, Handler::NeRI},
    {Opcode::Lt, Handler::LtRR, Handler::LtRI},
    {Opcode::Le, Handler::LeRR, Handler::LeRI},
    {Opcode::Gt, Handler::GtRR, Handler::GtRI},
    {Opcode::Ge, Handler::GeRR, Handler::GeRI},
};

// The operation with its operands exchanged; Ret when there is none.
Opcode exchanged(Opcode o) {
  switch (o) {
    case Opcode::Add:
    case Opcode::Mul:
    case Opcode::AddChecked:
    case Opcode::MulChecked:
    case Opcode::Min:
    case Opcode::Max:
    case Opcode::Eq:
    case Opcode::Ne:
      return o;
    case Opcode::Lt:
      return Opcode::Gt;
    case Opcode::Le:
      return Opcode::Ge;
    case Opcode::Gt:
      return Opcode::Lt;
    case Opcode::Ge:
      return Opcode::Le;
    default:
      return Opcode::Ret;
  }
}

struct Fusion {
  Handler comparison, fused;
  bool has_immediate;
};
constexpr Fusion kFusions[] = {
    {Handler::EqRR, Handler::EqIfRR, false}, {Handler::EqRI, Handler::EqIfRI, true},
    {Handler::NeRR, Handler::NeIfRR, false}, {Handler::NeRI, Handler::NeIfRI, true},
    {Handler::LtRR, Handler::LtIfRR, false}, {Handler::LtRI, Handler::LtIfRI, true},
    {Handler::LeRR, Handler::LeIfRR, false}, {Handler::LeRI, Handler::LeIfRI, true},
    {Handler::GtRR, Handler::GtIfRR, false}, {Handler::GtRI, Handler::GtIfRI, true},
    {Handler::GeRR, Handler::GeIfRR, false}, {Handler::GeRI, Handler::GeIfRI, true},
};

}  // namespace

void Decoder::set(Op& op, Handler handler) const {
  op.handler = handlers_[static_cast<size_t>(handler)];
}

OpExtra& Decoder::extra(Op& op) {
  p_.extras_.push_back(std::make_unique<OpExtra>());
  op.extra = p_.extras_.back().get();
  return *p_.extras_.back();
}

const AnyView* Decoder::pooled(Any value) {
  p_.immediates_.push_back(std::make_unique<Any>(std::move(value)));
  return p_.immediates_.back().get();
}

ValueRef Decoder::value(Arg arg, bool is_int) {
  ValueRef ref;
  switch (arg.kind()) {
    case ArgKind::LastUse:
      ref.last = !is_int;
      [[fallthrough]];
    case ArgKind::Register:
      ref.reg = static_cast<int32_t>(arg.index());
      break;
    case ArgKind::Constant:
      ref.constant = &p_.unit_.constants[arg.index()].value;
      break;
    case ArgKind::Immediate:
      ref.constant = pooled(Any(arg.value()));
      break;
    default:
      ref.constant = pooled(Any());
      break;
  }
  return ref;
}

int32_t Decoder::distance(Arg label, uint32_t index) const {
  return op_of_word_[label.index()] - static_cast<int32_t>(index);
}

void Decoder::run() {
  handlers_ = Dispatch::handlers();
  const std::vector<FunctionUnit>& functions = p_.unit_.functions;
  size_t total = 2;
  for (const FunctionUnit& f : functions) {
    for (uint32_t at = 0; at < f.code.size(); ++total) {
      Instruction in;
      decode(f.code, at, &in);
      at += in.words();
    }
  }
  p_.ops_.reserve(total);  // pointers into it stay
  p_.op_offsets_.reserve(total);
  // What the entry's frame returns to: a call that writes its register 0, then the exit.
  for (Handler h : {Handler::Exit, Handler::Exit}) {
    Op op;
    set(op, h);
    op.frame = 1;
    p_.ops_.push_back(op);
    p_.op_offsets_.push_back(0);
  }
  p_.functions_.resize(functions.size());
  for (uint32_t i = 0; i < functions.size(); ++i) {
    FunctionCode& code = p_.functions_[i];
    code.index = i;
    code.params = static_cast<int32_t>(functions[i].params.size());
    code.registers = static_cast<int32_t>(functions[i].register_count);
  }
  for (uint32_t i = 0; i < functions.size(); ++i) function(p_.functions_[i], functions[i]);
}

void Decoder::function(FunctionCode& code, const FunctionUnit& unit) {
  code.first_op = static_cast<uint32_t>(p_.ops_.size());
  code.entry = p_.ops_.data() + code.first_op;
  op_of_word_.assign(unit.code.size(), -1);
  for (uint32_t at = 0, index = 0; at < unit.code.size(); ++index) {
    Instruction in;
    decode(unit.code, at, &in);
    op_of_word_[at] = static_cast<int32_t>(index);
    at += in.words();
  }
  for (uint32_t at = 0, index = 0; at < unit.code.size(); ++index) {
    Instruction in;
    decode(unit.code, at, &in);
    Op op;
    op.frame = code.registers;
    instruction(op, in, index);
    p_.ops_.push_back(op);
    p_.op_offsets_.push_back(at);
    at += in.words();
  }
  code.op_count = static_cast<uint32_t>(p_.ops_.size()) - code.first_op;
  fuse(code.first_op, code.op_count);
}

void Decoder::fuse(uint32_t first, uint32_t count) {
  const void* branch = handlers_[static_cast<size_t>(Handler::If)];
  for (uint32_t i = first; i + 1 < first + count; ++i) {
    Op& op = p_.ops_[i];
    const Op& next = p_.ops_[i + 1];
    if (next.handler != branch || next.a != op.a) continue;
    for (const Fusion& f : kFusions) {
      if (op.handler != handlers_[static_cast<size_t>(f.comparison)]) continue;
      set(op, f.fused);
      if (f.has_immediate) {
        op.c = next.b + 1;
      } else {
        op.imm = next.b + 1;
      }
      break;
    }
  }
}

void Decoder::binary(Op& op, const Instruction& in) {
  op.a = destination(in.arg(0));
  Opcode opcode = in.opcode();
  Arg a = in.arg(1), b = in.arg(2);
  if (a.is(ArgKind::Immediate) && b.is_register() && exchanged(opcode) != Opcode::Ret) {
    std::swap(a, b);
    opcode = exchanged(opcode);
  }
  if (op.a >= 0 && a.is_register()) {
    for (const Forms& f : kForms) {
      if (f.opcode != opcode) continue;
      op.b = static_cast<int32_t>(a.index());
      if (b.is_register()) {
        op.c = static_cast<int32_t>(b.index());
        return set(op, f.rr);
      }
      op.imm = b.value();
      return set(op, f.ri);
    }
  }
  set(op, Handler::BinarySlow);
  OpExtra& e = extra(op);
  e.args = {value(in.arg(1), true), value(in.arg(2), true)};
  e.numbers = {static_cast<int32_t>(in.opcode())};
}

void Decoder::branch(Op& op, const Instruction& in, uint32_t index) {
  switch (in.opcode()) {
    case Opcode::Goto:
      op.a = distance(in.arg(0), index);
      return set(op, Handler::Goto);
    case Opcode::If:
      if (in.arg(0).is_register()) {
        op.a = static_cast<int32_t>(in.arg(0).index());
        op.b = distance(in.arg(1), index);
        return set(op, Handler::If);
      }
      op.a = in.arg(0).value() ? 1 : distance(in.arg(1), index);
      return set(op, Handler::Goto);
    case Opcode::IfEq: {
      Arg a = in.arg(0), b = in.arg(1);
      if (!a.is_register()) std::swap(a, b);
      int32_t otherwise = distance(in.arg(2), index);
      if (!a.is_register()) {
        op.a = a.value() == b.value() ? 1 : otherwise;
        return set(op, Handler::Goto);
      }
      op.a = static_cast<int32_t>(a.index());
      op.b = b.is_register() ? static_cast<int32_t>(b.index()) : -1;
      op.c = otherwise;
      op.imm = b.is_register() ? 0 : b.value();
      return set(op, Handler::IfEq);
    }
    default:
      break;
  }
  OpExtra& e = extra(op);
  e.args = {value(in.arg(0), true)};
  e.numbers = {distance(in.arg(1), index)};
  auto cases = in.list();
  for (size_t i = 0; i < cases.size(); i += 2) {
    e.values.push_back(Arg(cases[i]).value());
    e.numbers.push_back(distance(Arg(cases[i + 1]), index));
  }
  set(op, Handler::Switch);
}

// Operands in their order: values and integers as args, dtypes, devices and dim codes aside.
void Decoder::plain(Op& op, const Instruction& in) {
  OpExtra& e = extra(op);
  op.a = -1;
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    Arg a = in.arg(i);
    const OperandSpec& spec = in.info->spec_at(i);
    switch (spec.kind) {
      case OperandKind::Def:
        if (!spec.list) {
          op.a = destination(a);
        } else {
          e.numbers.push_back(destination(a));
        }
        break;
      case OperandKind::Dtype:
        e.dtype = a.as_dtype();
        break;
      case OperandKind::Device:
        break;  // the CPU: the only one that the verifier lets pass
      case OperandKind::Func:
        e.callee = &p_.functions_[a.index()];
        break;
      case OperandKind::Packed:
        e.slot = &p_.slots_[a.index()];
        break;
      case OperandKind::Dim: {
        Arg operand = in.arg(++i);
        e.numbers.push_back(static_cast<int32_t>(a.value()));
        e.numbers.push_back(operand.is(ArgKind::Register) ? static_cast<int32_t>(operand.index())
                                                          : -1);
        e.values.push_back(operand.is(ArgKind::Immediate) ? operand.value() : 0);
        break;
      }
      default:
        e.args.push_back(value(a, spec.kind == OperandKind::Int));
        e.releases = e.releases || e.args.back().last;
    }
  }
  bool first_is_callee =
      in.opcode() == Opcode::CallClosure || in.opcode() == Opcode::TailCallClosure;
  size_t begin = first_is_callee ? 1 : 0;
  e.contiguous = true;
  for (size_t i = begin; i < e.args.size(); ++i) {
    e.contiguous = e.contiguous && !e.args[i].constant &&
                   e.args[i].reg == e.args[begin].reg + static_cast<int32_t>(i - begin);
  }
}

void Decoder::instruction(Op& op, const Instruction& in, uint32_t index) {
  if (in.info->flags & kJumps) return branch(op, in, index);
  Opcode opcode = in.opcode();
  if (opcode >= Opcode::Add && opcode <= Opcode::Ge && opcode != Opcode::Not &&
      opcode != Opcode::Narrow) {
    return binary(op, in);
  }
  switch (opcode) {
    case Opcode::Ret:
      if (in.arg(0).is_register()) {
        op.a = static_cast<int32_t>(in.arg(0).index());
        return set(op, Handler::RetRegister);
      }
      op.constant = value(in.arg(0)).constant;
      return set(op, Handler::Ret);
    case Opcode::Move:
    case Opcode::LoadConst: {
      op.a = destination(in.arg(0));
      Arg source = in.arg(1);
      if (op.a >= 0 && source.is_register()) {
        op.b = static_cast<int32_t>(source.index());
        return set(op, source.is(ArgKind::LastUse) ? Handler::MoveLast : Handler::MoveRegister);
      }
      if (op.a < 0 && source.is(ArgKind::LastUse)) {
        extra(op).numbers = {static_cast<int32_t>(source.index())};
        return set(op, Handler::Kill);
      }
      if (op.a < 0) {
        op.a = 1;
        return set(op, Handler::Goto);
      }
      op.constant = value(source).constant;
      return set(op, Handler::Move);
    }
    case Opcode::LoadInt:
      op.a = destination(in.arg(0));
      op.imm = in.arg(1).value();
      if (op.a < 0) {
        op.a = 1;
        return set(op, Handler::Goto);
      }
      return set(op, Handler::LoadInt);
    default:
      break;
  }
  plain(op, in);
  // Handlers of opcodes stand first in the enumeration, in the order of the table.
  uint16_t row = 0;
  for (const OpcodeInfo& info : all_opcodes()) {
    if (info.opcode == opcode) break;
    ++row;
  }
  set(op, static_cast<Handler>(row));
}

}  // namespace tenon::vm
