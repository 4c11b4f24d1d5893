#include "vm/interp/decode.h"

#include "support/error.h"
#include "vm/interp/dispatch.h"
#include "vm/isa/limits.h"

namespace tenon::vm {

// What the pre-decoder makes of a comparison with an `if` behind it, and with a counter before it.
struct Fusion {
  Handler comparison, branch, step;
  bool has_immediate;
};

namespace {

// A register in an Op.
int32_t offset(Arg a) {
  return static_cast<int32_t>(a.index()) * kRegisterBytes;
}
int32_t destination(Arg a) {
  return a.is_none() ? -1 : offset(a);
}
// A jump in an Op, from its distance in Ops.
int32_t jump(int32_t distance) {
  return distance * static_cast<int32_t>(sizeof(Op));
}
static_assert(kMaxCodeWords * sizeof(Op) <= uint64_t{1} << 31);

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

constexpr Fusion kFusions[] = {
    {Handler::EqRR, Handler::EqIfRR, Handler::StepEqRR, false},
    {Handler::EqRI, Handler::EqIfRI, Handler::StepEqRI, true},
    {Handler::NeRR, Handler::NeIfRR, Handler::StepNeRR, false},
    {Handler::NeRI, Handler::NeIfRI, Handler::StepNeRI, true},
    {Handler::LtRR, Handler::LtIfRR, Handler::StepLtRR, false},
    {Handler::LtRI, Handler::LtIfRI, Handler::StepLtRI, true},
    {Handler::LeRR, Handler::LeIfRR, Handler::StepLeRR, false},
    {Handler::LeRI, Handler::LeIfRI, Handler::StepLeRI, true},
    {Handler::GtRR, Handler::GtIfRR, Handler::StepGtRR, false},
    {Handler::GtRI, Handler::GtIfRI, Handler::StepGtRI, true},
    {Handler::GeRR, Handler::GeIfRR, Handler::StepGeRR, false},
    {Handler::GeRI, Handler::GeIfRI, Handler::StepGeRI, true},
};

bool fits_32(int64_t v) {
  return v == static_cast<int32_t>(v);
}

}  // namespace

bool Decoder::is(const Op& op, Handler handler) const {
  return op.handler == handlers_[static_cast<size_t>(handler)];
}
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
    op.frame = kRegisterBytes;
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
  for (size_t i : one_argument_calls_) link(p_.ops_[i]);
}

// A call of one argument in a register finds its callee by the distance.
void Decoder::link(Op& op) {
  const int64_t distance = (op.extra->callee->entry - &op) * static_cast<int64_t>(sizeof(Op));
  if (!fits_32(distance)) return;
  op.c = static_cast<int32_t>(distance);
  set(op, op.extra->args[0].last ? Handler::CallOneLast : Handler::CallOne);
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
    op.frame = code.registers * kRegisterBytes;
    instruction(op, in, index);
    p_.ops_.push_back(op);
    p_.op_offsets_.push_back(at);
    at += in.words();
  }
  code.op_count = static_cast<uint32_t>(p_.ops_.size()) - code.first_op;
  fuse(code.first_op, code.op_count);
}

// From the end, so that a comparison that is a loop's own has its branch before its counter comes.
void Decoder::fuse(uint32_t first, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) {
    Op* op = &p_.ops_[first + i];
    for (const Fusion& f : kFusions) {
      if (i + 1 < count && is(op[0], f.comparison)) fuse_branch(op, f);
      if (i + 2 < count && is(op[1], f.branch)) fuse_step(op, f);
    }
  }
}

// A comparison and an `if` on its result.
void Decoder::fuse_branch(Op* op, const Fusion& f) {
  const Op& branch = op[1];
  if (!is(branch, Handler::If) || branch.a != op->a) return;
  set(*op, f.branch);
  if (f.has_immediate) {
    op->c = branch.b + jump(1);
  } else {
    op->imm = branch.b + jump(1);
  }
}

// A register's addition to itself before them, by which a loop counts.
void Decoder::fuse_step(Op* op, const Fusion& f) {
  const bool adds = is(*op, Handler::AddRI);
  if (!adds && !is(*op, Handler::SubRI)) return;
  const Op& comparison = op[1];
  const int64_t by = adds ? op->imm : -op->imm;
  if (op->a != op->b || comparison.b != op->a || op->imm == INT64_MIN || !fits_32(by)) return;
  if (f.has_immediate && !fits_32(comparison.imm)) return;
  set(*op, f.step);
  op->b = comparison.a;
  op->c = f.has_immediate ? static_cast<int32_t>(comparison.imm) : comparison.c;
  op->step = {static_cast<int32_t>(by), op[2].b + jump(2)};
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
      op.b = offset(a);
      if (b.is_register()) {
        op.c = offset(b);
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
      op.a = jump(distance(in.arg(0), index));
      return set(op, Handler::Goto);
    case Opcode::If:
      if (in.arg(0).is_register()) {
        op.a = offset(in.arg(0));
        op.b = jump(distance(in.arg(1), index));
        return set(op, Handler::If);
      }
      op.a = jump(in.arg(0).value() ? 1 : distance(in.arg(1), index));
      return set(op, Handler::Goto);
    case Opcode::IfEq: {
      Arg a = in.arg(0), b = in.arg(1);
      if (!a.is_register()) std::swap(a, b);
      int32_t otherwise = jump(distance(in.arg(2), index));
      if (!a.is_register()) {
        op.a = a.value() == b.value() ? jump(1) : otherwise;
        return set(op, Handler::Goto);
      }
      op.a = offset(a);
      op.b = b.is_register() ? offset(b) : -1;
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
          e.numbers.push_back(a.is_none() ? -1 : static_cast<int32_t>(a.index()));
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
  // Operands are read before a last use leaves None: of one register only the last operand moves.
  for (size_t i = 0; i < e.args.size(); ++i) {
    if (!e.args[i].last) continue;
    for (size_t j = e.args.size(); --j > i;) {
      if (e.args[j].constant || e.args[j].reg != e.args[i].reg) continue;
      e.args[i].last = false;
      e.args[j].last = true;
      break;
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
        op.a = offset(in.arg(0));
        return set(op, Handler::RetRegister);
      }
      op.constant = value(in.arg(0)).constant;
      return set(op, Handler::Ret);
    case Opcode::Move:
    case Opcode::LoadConst: {
      op.a = destination(in.arg(0));
      Arg source = in.arg(1);
      if (op.a >= 0 && source.is_register()) {
        op.b = offset(source);
        return set(op, source.is(ArgKind::LastUse) ? Handler::MoveLast : Handler::MoveRegister);
      }
      if (op.a < 0 && source.is(ArgKind::LastUse)) {
        extra(op).numbers = {static_cast<int32_t>(source.index())};
        return set(op, Handler::Kill);
      }
      if (op.a < 0) {
        op.a = jump(1);
        return set(op, Handler::Goto);
      }
      op.constant = value(source).constant;
      return set(op, Handler::Move);
    }
    case Opcode::LoadInt:
      op.a = destination(in.arg(0));
      op.imm = in.arg(1).value();
      if (op.a < 0) {
        op.a = jump(1);
        return set(op, Handler::Goto);
      }
      return set(op, Handler::LoadInt);
    default:
      break;
  }
  plain(op, in);
  const OpExtra& e = *op.extra;
  if (opcode == Opcode::Call && e.args.size() == 1 && !e.args[0].constant) {
    op.b = e.args[0].reg * kRegisterBytes;
    one_argument_calls_.push_back(p_.ops_.size());
  }
  // Handlers of opcodes stand first in the enumeration, in the order of the table.
  uint16_t row = 0;
  for (const OpcodeInfo& info : all_opcodes()) {
    if (info.opcode == opcode) break;
    ++row;
  }
  set(op, static_cast<Handler>(row));
}

}  // namespace tenon::vm
