#include "vm/interp/decode.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "device/call_context.h"
#include "support/error.h"
#include "support/poll.h"
#include "vm/executable/code_abi.h"
#include "vm/interp/dispatch.h"
#include "vm/isa/limits.h"
#include "vm/isa/operand_index.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

// A register as an Op stores it.
int32_t offset(Arg a) {
  return static_cast<int32_t>(a.index()) * kRegisterBytes;
}
int32_t destination(Arg a) {
  return a.is_none() ? -1 : offset(a);
}
// A jump as an Op stores it, given its distance in Ops.
int32_t jump(int32_t distance) {
  return distance * static_cast<int32_t>(sizeof(Op));
}
static_assert(kMaxCodeWords * sizeof(Op) <= uint64_t{1} << 31);

// The general form of every opcode.
constexpr auto kGeneral = [] {
  std::array<Handler, kOpcodeNumbers> table{};
#define TENON_OPCODE(identifier, ...) \
  table.at(static_cast<size_t>(Opcode::identifier)) = Handler::identifier;
#include "vm/isa/opcodes.def"
  return table;
}();

Handler general(Opcode opcode) {
  return kGeneral[static_cast<size_t>(opcode)];
}

// A binary operation's forms for two registers, and for a register and an immediate.
struct FastForms {
  Opcode opcode;
  Opcode exchanged;  // gives the same with exchanged operands; None if there is none
  Handler rr, ri;
};
constexpr FastForms kFastForms[] = {
#define TENON_OPCODE(...)
#define TENON_FAST_BINARY(identifier, mnemonic, number, exchanged, ...) \
  {Opcode::identifier, Opcode::exchanged, Handler::identifier##RR, Handler::identifier##RI},
#define TENON_COMPARISON TENON_FAST_BINARY
#include "vm/isa/opcodes.def"
};

// The orders of signed integers in which a comparison holds; none if it isn't one of these.
constexpr uint8_t orders_of(bool (*holds)(int64_t, int64_t)) {
  if (holds(-1, 0) != holds(0, 1)) return 0;
  return static_cast<uint8_t>((holds(0, 1) ? kLess : 0) | (holds(0, 0) ? kEqual : 0) |
                              (holds(1, 0) ? kGreater : 0));
}

// The fused forms of a comparison: with a following `if`, and, where it has `orders`, also with a
// preceding counter.
struct Fusion {
  Handler comparison, branch, step;
  bool has_immediate;
  uint8_t orders;
};
constexpr Fusion kFusions[] = {
#define TENON_OPCODE(...)
#define TENON_COMPARISON(identifier, mnemonic, number, exchanged, condition, ...) \
  {Handler::identifier##RR, Handler::identifier##IfRR, Handler::StepRR, false,    \
   orders_of([](int64_t a, int64_t b) { return condition; })},                    \
      {Handler::identifier##RI, Handler::identifier##IfRI, Handler::StepRI, true, \
       orders_of([](int64_t a, int64_t b) { return condition; })},
#include "vm/isa/opcodes.def"
};

// The first row whose `field` equals `value`; null if there is none.
template <class Row, size_t N, class T>
const Row* find(const Row (&table)[N], T Row::*field, T value) {
  for (const Row& row : table) {
    if (row.*field == value) return &row;
  }
  return nullptr;
}

template <class Integer>
bool fits(int64_t v) {
  return v == static_cast<Integer>(v);
}

class Decoder {
 public:
  Decoder(const Unit& unit, std::span<PackedSlot> slots) : unit_(unit), slots_(slots) {}
  DecodedCode run();

 private:
  void function(FunctionCode& code, const FunctionUnit& unit);
  void link(Op& op);
  void fuse(uint32_t first, uint32_t count);
  void fuse_branch(Op* op, uint32_t index, const Fusion& f);
  void fuse_step(Op* op, uint32_t index, const Fusion& f);
  void add(const Op& op, Handler handler, uint32_t offset);
  void change(Op& op, uint32_t index, Handler handler);

  // Each fills an instruction's Op, whose `a` is the destination, and returns the form to run;
  // `index` is the instruction's, for jumps.
  Handler instruction(Op& op, const Instruction& in, uint32_t index);
  Handler plain(Op& op, const Instruction& in);
  Handler function_value(Op& op, const Instruction& in);
  Handler call(Op& op, const Instruction& in);
  Handler registers(Op& op, const Instruction& in);
  Handler match(Op& op, const Instruction& in);
  Handler binary(Op& op, const Instruction& in);
  Handler go_to(Op& op, int32_t distance);
  Handler if_true(Op& op, const Instruction& in, uint32_t index);
  Handler if_equal(Op& op, const Instruction& in, uint32_t index);
  Handler switch_on(Op& op, const Instruction& in, uint32_t index);
  Handler ret(Op& op, const Instruction& in);
  Handler move(Op& op, const Instruction& in);
  Handler load_int(Op& op, const Instruction& in);

  // Operands of that class, owned by the result; stores them in the Op if they derive from
  // Operands.
  template <OpClass op_class>
  OperandsOf<op_class>& operands(Op& op);
  void read_operands(Operands& o, const Instruction& in);
  void read_function(CallOperands& o, const Instruction& in);
  ValueRef value(Arg arg, bool is_int = false);
  const AnyView* pooled(Any value);
  int32_t distance(Arg label, uint32_t index) const;

  const Unit& unit_;
  std::span<PackedSlot> slots_;
  DecodedCode out_;
  Ticker ticker_;
  const FunctionCode* function_ = nullptr;  // being decoded
  std::vector<int32_t> op_of_word_;
  std::vector<Handler> chosen_;             // of the function's Ops
  std::vector<uint32_t> last_reader_;       // of each register, in the current instruction
  std::vector<size_t> one_argument_calls_;  // indices of their Ops
};

template <OpClass op_class>
OperandsOf<op_class>& Decoder::operands(Op& op) {
  using T = OperandsOf<op_class>;
  charge(sizeof(T));
  auto owned = std::make_unique<T>();
  T& made = *owned;
  out_.operands.push_back(std::move(owned));
  if constexpr (std::is_base_of_v<Operands, T>) op.operands = &made;
  return made;
}

const AnyView* Decoder::pooled(Any value) {
  charge(sizeof(Any));
  out_.values.push_back(std::make_unique<Any>(std::move(value)));
  return out_.values.back().get();
}

ValueRef Decoder::value(Arg arg, bool is_int) {
  ValueRef ref;
  switch (arg.kind()) {
    case ArgKind::Register:
    case ArgKind::LastUse:
    case ArgKind::Borrowed:
      ref.reg = static_cast<int32_t>(arg.index());
      ref.last = arg.is(ArgKind::LastUse) && !is_int;
      ref.borrowed = arg.is(ArgKind::Borrowed);
      break;
    case ArgKind::Constant:
      ref.constant = &unit_.constants[arg.index()].value;
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

DecodedCode Decoder::run() {
  const std::vector<FunctionUnit>& functions = unit_.functions;
  size_t total = kEntryOps, registers = 0;
  for (const FunctionUnit& f : functions) {
    registers = std::max<size_t>(registers, f.register_count);
    for (uint32_t at = 0; at < f.code.size(); ++total) {
      Instruction in;
      decode(f.code, at, &in);
      at += in.words();
    }
  }
  charge(total * (sizeof(Op) + sizeof(uint32_t)) + functions.size() * sizeof(FunctionCode));
  last_reader_.resize(registers);
  out_.ops.reserve(total);  // pointers into it stay valid
  out_.op_offsets.reserve(total);
  // The entry frame returns to these: a call that writes its register 0, then the exit.
  for (uint32_t i = 0; i < kEntryOps; ++i) {
    Op op;
    op.frame = kRegisterBytes;
    add(op, Handler::Exit, 0);
  }
  out_.functions.resize(functions.size());
  for (uint32_t i = 0; i < functions.size(); ++i) {
    FunctionCode& code = out_.functions[i];
    code.index = i;
    code.params = static_cast<int32_t>(functions[i].params.size());
    code.registers = static_cast<int32_t>(functions[i].register_count);
    const bool borrows = std::ranges::any_of(functions[i].params, &Param::borrowed);
    code.closure_params = borrows ? -1 : code.params;
    code.has_unmatched = std::ranges::any_of(functions[i].params, is_unmatched, &Param::type);
  }
  for (uint32_t i = 0; i < functions.size(); ++i) function(out_.functions[i], functions[i]);
  for (size_t i : one_argument_calls_) link(out_.ops[i]);
  return std::move(out_);
}

void Decoder::add(const Op& op, Handler handler, uint32_t offset) {
  out_.ops.push_back(op);
  out_.ops.back().handler = Dispatch::address_of(handler);
  out_.op_offsets.push_back(offset);
}

// A call with one register argument stores its callee as a distance.
void Decoder::link(Op& op) {
  const auto& o = op.as<OpClass::Call>();
  const int64_t distance = (o.callee->entry - &op) * static_cast<int64_t>(sizeof(Op));
  if (!fits<int32_t>(distance)) return;
  op.c = static_cast<int32_t>(distance);
  op.handler = Dispatch::address_of(o.args[0].last ? Handler::CallOneLast : Handler::CallOne);
}

void Decoder::function(FunctionCode& code, const FunctionUnit& unit) {
  function_ = &code;
  code.first_op = static_cast<uint32_t>(out_.ops.size());
  code.entry = out_.ops.data() + code.first_op;
  op_of_word_.assign(unit.code.size(), -1);
  chosen_.clear();
  for (uint32_t at = 0, index = 0; at < unit.code.size(); ++index) {
    Instruction in;
    decode(unit.code, at, &in);
    op_of_word_[at] = static_cast<int32_t>(index);
    at += in.words();
  }
  for (uint32_t at = 0, index = 0; at < unit.code.size(); ++index) {
    ticker_.tick();
    Instruction in;
    decode(unit.code, at, &in);
    if (in.operands.size() > 3) charge(in.operands.size() * sizeof(ValueRef));
    Op op;
    op.a = in.info->has_result() ? destination(in.arg(0)) : -1;
    op.frame = code.registers * kRegisterBytes;
    chosen_.push_back(instruction(op, in, index));
    add(op, chosen_.back(), at);
    at += in.words();
  }
  code.op_count = static_cast<uint32_t>(out_.ops.size()) - code.first_op;
  fuse(code.first_op, code.op_count);
}

// Backwards, so that a loop's comparison is fused with its branch before its counter is considered.
void Decoder::fuse(uint32_t first, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) {
    Op* op = &out_.ops[first + i];
    if (i + 1 < count) {
      if (const Fusion* f = find(kFusions, &Fusion::comparison, chosen_[i])) fuse_branch(op, i, *f);
    }
    if (i + 2 < count) {
      if (const Fusion* f = find(kFusions, &Fusion::branch, chosen_[i + 1])) fuse_step(op, i, *f);
    }
  }
}

void Decoder::change(Op& op, uint32_t index, Handler handler) {
  chosen_[index] = handler;
  op.handler = Dispatch::address_of(handler);
}

// Fuses a comparison and an `if` on its result.
void Decoder::fuse_branch(Op* op, uint32_t index, const Fusion& f) {
  const Op& branch = op[1];
  if (chosen_[index + 1] != Handler::If || branch.a != op->a) return;
  change(*op, index, f.branch);
  if (f.has_immediate) {
    op->c = branch.b + jump(1);
  } else {
    op->imm = branch.b + jump(1);
  }
}

// Fuses a preceding addition to a register, as in a counting loop. The comparison writes neither
// the counter nor the bound, so that the loop may keep both.
void Decoder::fuse_step(Op* op, uint32_t index, const Fusion& f) {
  const bool adds = chosen_[index] == Handler::AddRI;
  if (!f.orders || (!adds && chosen_[index] != Handler::SubRI) || op->imm == INT64_MIN) return;
  const Op& comparison = op[1];
  const int64_t by = adds ? op->imm : -op->imm;
  const int64_t bound = f.has_immediate ? comparison.imm : comparison.c;
  if (op->a != op->b || comparison.b != op->a || comparison.a == op->a || !fits<int32_t>(bound))
    return;
  if (!f.has_immediate && (bound == op->a || bound == comparison.a)) return;
  if (!fits<int16_t>(by)) return;
  change(*op, index, f.step);
  op->b = comparison.a;
  op->c = static_cast<int32_t>(bound);
  op->step = {static_cast<int16_t>(by), f.orders, op[2].b + jump(2)};
}

// Reads the value operands, in order, and the dtype and device. Written registers, functions and
// pairs are left to the classes that have them.
void Decoder::read_operands(Operands& o, const Instruction& in) {
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    const Arg a = in.arg(i);
    const OperandRole role = role_of(in.info->spec_at(i).kind);
    switch (role) {
      case OperandRole::Dtype:
        o.dtype = a.as_dtype();
        break;
      case OperandRole::Device:
        o.device = a.as_device();
        break;
      case OperandRole::ReadsValue:
      case OperandRole::ReadsNumber:
      case OperandRole::Literal:
        o.args.push_back(value(a, role == OperandRole::ReadsNumber));
        o.releases = o.releases || o.args.back().last;
        break;
      case OperandRole::Writes:
      case OperandRole::Callee:
      case OperandRole::Target:
      case OperandRole::Pair:
      case OperandRole::Unused:
        break;
    }
  }
  if (o.releases) keep_last_use_of_each(o.args, last_reader_);
}

namespace {

// The integers that the operands are, or nullopt if some are read from registers.
std::optional<std::vector<int64_t>> known_integers(std::span<const ValueRef> refs) {
  std::vector<int64_t> known;
  for (const ValueRef& ref : refs) {
    if (!ref.constant || ref.constant->type_index != TypeIndex::Int) return std::nullopt;
    known.push_back(ref.constant->v.i);
  }
  return known;
}

// Of an instruction whose dimensions begin with operand `first_dim`. Null for a tensor that depends
// on registers, or can't exist: running the instruction says so.
std::unique_ptr<const FixedTensor> fixed_tensor(const Operands& o, size_t first_dim,
                                                int64_t offset = 0) {
  const auto dims = known_integers(std::span(o.args).subspan(first_dim));
  if (offset < 0 || !dims) return nullptr;
  if (dims->size() > static_cast<size_t>(kMaxRank) || !byte_count(*dims, o.dtype)) return nullptr;
  std::vector<int64_t> room(2 * dims->size());
  const CompactForm form(o.dtype, *dims, room.data());
  return std::unique_ptr<const FixedTensor>(
      new FixedTensor{std::move(room), form, static_cast<uint64_t>(offset)});
}

// The forms of Plain instructions that the dispatch loop runs itself: handlers.def describes them.

Handler conversion_form(Op& op, const Operands& o, const Instruction& in) {
  const ValueRef& number = o.args.front();
  const bool is_int = in.opcode() == Opcode::Narrow && o.dtype.is_int() && o.dtype.bits < 64;
  const bool is_single = in.opcode() == Opcode::RoundFloat && o.dtype == f32;
  if (op.a < 0 || number.constant || !(is_int || is_single)) return general(in.opcode());
  op.b = number.reg * kRegisterBytes;
  if (is_single) return Handler::RoundRegister;
  op.c = (64 - o.dtype.bits) * (o.dtype.is_signed_int() ? 1 : -1);
  return Handler::NarrowRegister;
}

Handler set_form(Op& op, const Operands& o, const Instruction& in) {
  const ValueRef& array = o.args.front();
  const Arg index = in.arg(operand(Opcode::ArraySet, "index"));
  if (!array.last || op.a != array.reg * kRegisterBytes || !index.is_register()) {
    return general(in.opcode());
  }
  op.b = static_cast<int32_t>(index.index()) * kRegisterBytes;
  return Handler::SetElement;
}

// Of get_tag, and of get_field and borrow_field, which also have a field's index.
Handler field_form(Op& op, const Operands& o, const Instruction& in) {
  const bool is_tag = in.opcode() == Opcode::GetTag, borrows = in.opcode() == Opcode::BorrowField;
  const ValueRef& object = o.args.front();
  op.b = object.reg * kRegisterBytes;
  op.c = !is_tag ? -int32_t{borrows} : object.borrowed ? -TypeIndex::Cell : TypeIndex::Cell;
  if (op.a < 0 || o.releases || object.constant) return general(in.opcode());
  if (is_tag) return Handler::GetTagRegister;
  const Arg index = in.arg(operand(Opcode::GetField, "index"));
  if (index.is_register()) {
    op.c = static_cast<int32_t>(index.index()) * kRegisterBytes;
    return Handler::ElementOfRegister;
  }
  const auto number = static_cast<uint64_t>(index.value());
  if (number > INT32_MAX) return general(in.opcode());
  op.c ^= static_cast<int32_t>(number);
  return Handler::FieldOfRegister;
}

}  // namespace

Handler Decoder::plain(Op& op, const Instruction& in) {
  Operands& o = operands<OpClass::Plain>(op);
  read_operands(o, in);
  if (in.opcode() == Opcode::AllocTensor) {
    constexpr size_t kOffset = value_operand(Opcode::AllocTensor, "offset");
    const auto offset = known_integers(std::span(o.args).subspan(kOffset, 1));
    if (offset) {
      o.fixed = fixed_tensor(o, value_operand(Opcode::AllocTensor, "dims"), offset->front());
    }
    if (o.fixed) o.releases = false;  // the instruction itself moves its storage
  } else if (in.opcode() == Opcode::NewTensor) {
    o.fixed = fixed_tensor(o, value_operand(Opcode::NewTensor, "dims"));
  } else if (in.opcode() == Opcode::AllocResult) {
    o.fixed = fixed_tensor(o, value_operand(Opcode::AllocResult, "dims"));
  }
  switch (in.opcode()) {
    case Opcode::Narrow:
    case Opcode::RoundFloat:
      return conversion_form(op, o, in);
    case Opcode::ArraySet:
      return set_form(op, o, in);
    case Opcode::GetTag:
    case Opcode::GetField:
    case Opcode::BorrowField:
      return field_form(op, o, in);
    default:
      return general(in.opcode());
  }
}

void Decoder::read_function(CallOperands& o, const Instruction& in) {
  for (const Word word : in.operands) {
    const Arg a(word);
    if (a.is(ArgKind::Function)) o.callee = &out_.functions[a.index()];
    if (a.is(ArgKind::Packed)) o.slot = &slots_[a.index()];
  }
}

Handler Decoder::function_value(Op& op, const Instruction& in) {
  auto& o = operands<OpClass::Function>(op);
  read_operands(o, in);
  read_function(o, in);
  return general(in.opcode());
}

Handler Decoder::call(Op& op, const Instruction& in) {
  auto& o = operands<OpClass::Call>(op);
  read_operands(o, in);
  read_function(o, in);
  const auto arguments = std::span(o.args).last(in.list().size());
  o.contiguous = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    o.contiguous = o.contiguous && !arguments[i].constant && !arguments[i].borrowed &&
                   arguments[i].reg == arguments[0].reg + static_cast<int32_t>(i);
  }
  if (in.opcode() == Opcode::TailCall && o.callee == function_ && passes_in_place(in)) {
    op.a = jump(-static_cast<int32_t>(out_.ops.size() - function_->first_op));
    op.b = function_->params * kRegisterBytes;
    return Handler::TailCallInPlace;
  }
  if (o.callee && !in.info->ends() && arguments.size() == 1 && o.contiguous) {
    op.b = arguments[0].reg * kRegisterBytes;
    one_argument_calls_.push_back(out_.ops.size());
  }
  return general(in.opcode());
}

Handler Decoder::registers(Op& op, const Instruction& in) {
  auto& o = operands<OpClass::Unpack>(op);
  read_operands(o, in);
  for (const Word word : in.list()) {
    const Arg a(word);
    o.registers.push_back(a.is_none() ? -1 : static_cast<int32_t>(a.index()));
  }
  return general(in.opcode());
}

Handler Decoder::match(Op& op, const Instruction& in) {
  auto& o = operands<OpClass::Match>(op);
  read_operands(o, in);
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    if (in.info->spec_at(i).kind != OperandKind::Dim) continue;
    DimCheck check;
    check.match = static_cast<DimMatch>(in.arg(i).value());
    const Arg operand = in.arg(++i);
    if (operand.is_register()) check.reg = static_cast<int32_t>(operand.index());
    if (operand.is(ArgKind::Immediate)) check.value = operand.value();
    const ValueRef& value = o.args.front();
    o.overwrites = o.overwrites ||
                   (check.match == DimMatch::Store && !value.constant && check.reg == value.reg);
    o.dims.push_back(check);
  }
  return general(in.opcode());
}

Handler Decoder::binary(Op& op, const Instruction& in) {
  // The operands of every row that the table's macros for binary operations make.
  constexpr uint32_t kLeft = operand(Opcode::Add, "a"), kRight = operand(Opcode::Add, "b");
  const Arg left = in.arg(kLeft);
  const Arg right = in.operands.size() > kRight ? in.arg(kRight) : left;  // fneg has one operand
  Arg a = left, b = right;
  const FastForms* forms = find(kFastForms, &FastForms::opcode, in.opcode());
  if (forms && a.is(ArgKind::Immediate) && b.is_register() && forms->exchanged != Opcode::None) {
    std::swap(a, b);
    forms = find(kFastForms, &FastForms::opcode, forms->exchanged);
  }
  if (forms && op.a >= 0 && a.is_register()) {
    op.b = offset(a);
    if (b.is_register()) {
      op.c = offset(b);
      return forms->rr;
    }
    op.imm = b.value();
    return forms->ri;
  }
  auto& o = operands<OpClass::Binary>(op);
  o.a = value(left, true);
  o.b = value(right, true);
  o.operation = &binary_operation(in.opcode());
  op.binary = &o;
  return general(in.opcode());
}

Handler Decoder::go_to(Op& op, int32_t distance) {
  op.a = jump(distance);
  return Handler::Goto;
}

Handler Decoder::if_true(Op& op, const Instruction& in, uint32_t index) {
  const Arg condition = in.arg(operand(Opcode::If, "cond"));
  const int32_t otherwise = distance(in.arg(operand(Opcode::If, "otherwise")), index);
  if (!condition.is_register()) return go_to(op, condition.value() ? 1 : otherwise);
  op.a = offset(condition);
  op.b = jump(otherwise);
  return Handler::If;
}

Handler Decoder::if_equal(Op& op, const Instruction& in, uint32_t index) {
  Arg a = in.arg(operand(Opcode::IfEq, "a")), b = in.arg(operand(Opcode::IfEq, "b"));
  const int32_t otherwise = distance(in.arg(operand(Opcode::IfEq, "otherwise")), index);
  if (!a.is_register()) std::swap(a, b);
  if (!a.is_register()) return go_to(op, a.value() == b.value() ? 1 : otherwise);
  op.a = offset(a);
  op.b = b.is_register() ? offset(b) : -1;
  op.c = jump(otherwise);
  op.imm = b.is_register() ? 0 : b.value();
  return Handler::IfEq;
}

Handler Decoder::switch_on(Op& op, const Instruction& in, uint32_t index) {
  auto& o = operands<OpClass::Switch>(op);
  op.cases = &o;
  o.value = value(in.arg(operand(Opcode::Switch, "value")), true);
  o.otherwise = distance(in.arg(operand(Opcode::Switch, "otherwise")), index);
  const auto cases = in.list();
  for (size_t i = 0; i < cases.size(); i += 2) {
    o.cases.push_back({Arg(cases[i]).value(), distance(Arg(cases[i + 1]), index)});
  }
  while (o.dense < o.cases.size() && o.cases[o.dense].value == static_cast<int64_t>(o.dense)) {
    ++o.dense;
  }
  return Handler::Switch;
}

Handler Decoder::ret(Op& op, const Instruction& in) {
  const Arg returned = in.arg(operand(Opcode::Ret, "value"));
  if (returned.is_register()) {
    op.a = offset(returned);
    return Handler::RetRegister;
  }
  op.constant = value(returned).constant;
  return Handler::Ret;
}

Handler Decoder::move(Op& op, const Instruction& in) {
  const Arg source = in.arg(operand(Opcode::Move, "src"));  // or load_const's constant
  if (op.a >= 0 && source.is_register()) {
    op.b = offset(source);
    return source.is(ArgKind::LastUse) ? Handler::MoveLast : Handler::MoveRegister;
  }
  if (op.a < 0 && source.is(ArgKind::LastUse)) {
    operands<OpClass::Kill>(op).registers = {static_cast<int32_t>(source.index())};
    return Handler::Kill;
  }
  if (op.a < 0) return go_to(op, 1);
  op.constant = value(source).constant;
  return Handler::Move;
}

Handler Decoder::load_int(Op& op, const Instruction& in) {
  if (op.a < 0) return go_to(op, 1);
  op.imm = in.arg(operand(Opcode::LoadInt, "value")).value();
  return Handler::LoadInt;
}

Handler Decoder::instruction(Op& op, const Instruction& in, uint32_t index) {
  switch (in.info->op_class) {
    case OpClass::Plain:
      return plain(op, in);
    case OpClass::Function:
      return function_value(op, in);
    case OpClass::Unpack:
    case OpClass::Kill:
      return registers(op, in);
    case OpClass::Match:
      return match(op, in);
    case OpClass::Binary:
    case OpClass::Comparison:
      return binary(op, in);
    case OpClass::Call:
      return call(op, in);
    case OpClass::Return:
      return ret(op, in);
    case OpClass::Goto:
      return go_to(op, distance(in.arg(operand(Opcode::Goto, "target")), index));
    case OpClass::If:
      return if_true(op, in, index);
    case OpClass::IfEq:
      return if_equal(op, in, index);
    case OpClass::Switch:
      return switch_on(op, in, index);
    case OpClass::Move:
      return move(op, in);
    case OpClass::LoadInt:
      return load_int(op, in);
    case OpClass::Concurrent:
      op.imm = in.arg(operand(Opcode::Concurrent, "count")).value();
      return Handler::Concurrent;
  }
  TENON_ASSERT(false, "an opcode without a class");
}

}  // namespace

const FunctionCode* DecodedCode::locate(const Op* op, uint32_t* offset) const {
  if (!op || op < ops.data() || op >= ops.data() + ops.size()) return nullptr;
  const auto index = static_cast<uint32_t>(op - ops.data());
  const auto after =
      std::upper_bound(functions.begin(), functions.end(), index,
                       [](uint32_t i, const FunctionCode& f) { return i < f.first_op; });
  if (after == functions.begin()) return nullptr;
  const FunctionCode& code = *(after - 1);
  if (index >= code.first_op + code.op_count) return nullptr;
  if (offset) *offset = op_offsets[index];
  return &code;
}

DecodedCode predecode(const Unit& unit, std::span<PackedSlot> slots) {
  return Decoder(unit, slots).run();
}

}  // namespace tenon::vm
