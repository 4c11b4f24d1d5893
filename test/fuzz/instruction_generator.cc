#include "instruction_generator.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "object/array.h"
#include "object/registry.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/machine.h"
#include "vm/isa/limits.h"

namespace tenon::fuzz {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::OpcodeInfo;
using vm::OperandKind;

constexpr DataType kDtypes[] = {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64};

int64_t number(Choices& choices) {
  static constexpr int64_t kNumbers[] = {
      -1, 3, 7, 8, 16, 63, 64, 1 << 20, vm::kMinImmediate, vm::kMaxImmediate};
  if (choices.one_in(4)) return choices.of(kNumbers);
  return static_cast<int64_t>(choices.below(4));
}

uint32_t index(Choices& choices, size_t size) {
  return static_cast<uint32_t>(choices.below(size));
}

// Chooses the operands of one instruction.
class LineMaker {
 public:
  LineMaker(Choices& choices, const OpcodeInfo& info, const Scope& scope, const vm::Unit& unit)
      : choices_(choices), info_(info), scope_(scope), unit_(unit), line_{info.opcode, {}} {}

  std::optional<Line> make() {
    if (info_.opcode == vm::Opcode::BorrowField && scope_.borrowing.empty()) return std::nullopt;
    moves_borrowed_ =
        info_.opcode == vm::Opcode::Move && !scope_.borrowing.empty() && choices_.one_in(3);
    for (const vm::OperandSpec& spec : info_.specs()) {
      for (uint64_t n = spec.list ? items() : 1; n > 0; --n) {
        if (!operand(spec.kind)) return std::nullopt;
      }
    }
    // A register that is lent isn't used for the last time.
    for (const Arg lent : line_.operands) {
      if (!lent.is(ArgKind::Borrowed)) continue;
      for (Arg& a : line_.operands) {
        if (a == Arg::last(lent.index())) a = Arg::reg(a.index());
      }
    }
    return std::move(line_);
  }

 private:
  // The length of the list, which may depend on the operands before it.
  uint64_t items() {
    if (!function_) return rank_ == 0 ? 1 : choices_.below(4);
    const size_t parameters = unit_.functions[*function_].params.size();
    return info_.calls() ? parameters : choices_.below(parameters + 1);
  }

  // Returns false if the scope has nothing of that kind.
  bool operand(OperandKind kind) {
    switch (kind) {
      case OperandKind::Def:
        if (info_.opcode == vm::Opcode::BorrowField && choices_.one_in(3)) return push(Arg::none());
        if (writes_borrowed()) return push(Arg::reg(choices_.of(scope_.borrowing)));
        return push(choices_.one_in(12) ? Arg::none() : Arg::reg(any_register()));
      case OperandKind::Reg:
        return push(Arg::reg(any_register()));
      case OperandKind::Use:
        return push(used());
      case OperandKind::Value:
        return push(value());
      case OperandKind::Lent:
        return lent();
      case OperandKind::Borrowed:
        if (scope_.borrowing.empty()) return false;
        return push(Arg::borrowed(choices_.of(scope_.borrowing)));
      case OperandKind::Float:
        return push(unit_.constants.empty() || choices_.one_in(2)
                        ? used()
                        : Arg::constant(index(choices_, unit_.constants.size())));
      case OperandKind::Int:
        return push(choices_.one_in(2) ? Arg::imm(number(choices_)) : used());
      case OperandKind::Imm:
        return push(Arg::imm(number(choices_)));
      case OperandKind::Align:
        return push(Arg::imm(int64_t{1} << choices_.below(13)));
      case OperandKind::Tag:
        return push(Arg::imm(choices_.one_in(8) ? vm::kMaxTag : int64_t(choices_.below(4))));
      case OperandKind::Rank:
        rank_ = static_cast<int64_t>(choices_.below(2));
        return push(Arg::imm(*rank_));
      case OperandKind::Group:
        return push(Arg::imm(2 + static_cast<int64_t>(choices_.below(2))));
      case OperandKind::Const:
        if (unit_.constants.empty()) return false;
        return push(Arg::constant(index(choices_, unit_.constants.size())));
      case OperandKind::Text:
        if (scope_.text.empty()) return false;
        return push(Arg::constant(choices_.of(scope_.text)));
      case OperandKind::Func:
        if (unit_.functions.empty()) return false;
        function_ = index(choices_, unit_.functions.size());
        return push(Arg::func(*function_));
      case OperandKind::Packed:
        if (unit_.packed.empty()) return false;
        return push(Arg::packed(index(choices_, unit_.packed.size())));
      case OperandKind::Label:
        return push(label());
      case OperandKind::Dtype:
        return push(Arg::dtype(choices_.of(kDtypes)));
      case OperandKind::Device:
        return push(Arg::device(kCpu));
      case OperandKind::Dim:
        return dim();
      case OperandKind::Case:
        return push(Arg::imm(number(choices_))) && push(label());
    }
    return false;
  }

  bool writes_borrowed() const {
    return moves_borrowed_ || info_.opcode == vm::Opcode::BorrowField;
  }

  bool lent() {
    bool borrows = moves_borrowed_, may_lend = false;
    if (info_.calls()) {
      const auto& params = unit_.functions[*function_].params;
      borrows = params[line_.operands.size() - info_.fixed_words].borrowed;
      may_lend = info_.opcode == vm::Opcode::Call;
    } else if (!borrows && info_.opcode != vm::Opcode::Move && !scope_.borrowing.empty()) {
      borrows = choices_.one_in(2);
    }
    if (!borrows) return push(value());
    if (may_lend && (scope_.borrowing.empty() || choices_.one_in(2))) {
      return push(Arg::borrowed(used().index()));
    }
    if (scope_.borrowing.empty()) return false;
    return push(Arg::borrowed(choices_.of(scope_.borrowing)));
  }

  bool dim() {
    const auto match = static_cast<vm::DimMatch>(choices_.below(4));
    push(Arg::imm(static_cast<int64_t>(match)));
    switch (match) {
      case vm::DimMatch::Ignore:
        return push(Arg::none());
      case vm::DimMatch::EqualsImmediate:
        return push(Arg::imm(number(choices_)));
      default:
        return push(Arg::reg(any_register()));
    }
  }

  bool push(Arg a) {
    line_.operands.push_back(a);
    return true;
  }

  uint32_t any_register() {
    while (true) {
      const uint32_t reg = index(choices_, scope_.registers);
      if (!scope_.borrows(reg)) return reg;
    }
  }
  Arg used() {
    const bool full = !scope_.full.empty() && !choices_.one_in(8);
    const uint32_t reg = full ? choices_.of(scope_.full) : any_register();
    return choices_.one_in(5) ? Arg::last(reg) : Arg::reg(reg);
  }
  Arg value() {
    switch (choices_.below(8)) {
      case 0:
        return Arg::imm(number(choices_));
      case 1:
        return Arg::none();
      case 2:
        if (!unit_.constants.empty()) {
          return Arg::constant(index(choices_, unit_.constants.size()));
        }
        [[fallthrough]];
      default:
        return used();
    }
  }
  // A few instructions ahead, rarely anywhere.
  Arg label() {
    const uint64_t ahead = 1 + choices_.below(3);
    return Arg::label(choices_.one_in(4) ? index(choices_, scope_.lines + 1)
                                         : static_cast<uint32_t>(scope_.lines + ahead));
  }

  Choices& choices_;
  const OpcodeInfo& info_;
  const Scope& scope_;
  const vm::Unit& unit_;
  Line line_;
  std::optional<uint32_t> function_;
  std::optional<int64_t> rank_;
  bool moves_borrowed_ = false;
};

// Adds the tables that the functions of every unit may use.
void add_tables(vm::Unit& unit) {
  const std::vector<float> elements(6, 1.0f);
  const std::vector<int64_t> sizes = {2, 3}, count = {2};
  const Tensor tensor = Tensor::copy_of<float>(sizes, f32, elements);
  const Tensor numbers = Tensor::copy_of<int64_t>(count, i64, sizes);
  for (const Any& value : {Any(tensor), Any(numbers), Any(Shape({2, 3})), Any(int64_t{2}),
                           Any(String("a {} b")), Any(0.5), Any(true), Any(f32)}) {
    unit.add_constant(value);
  }
  for (const std::string& name : registered_names()) {
    if (find_registered(name)->flags.for_files) unit.packed.push_back({name, false});
  }
}

std::vector<uint32_t> text_constants(const vm::Unit& unit) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < unit.constants.size(); ++i) {
    if (String::accepts(unit.constants[i].value)) out.push_back(i);
  }
  return out;
}

Any argument(Choices& choices, const vm::Unit& unit) {
  if (choices.one_in(3)) return unit.constants[choices.below(unit.constants.size())].value;
  if (choices.one_in(4)) return Any(Array<Any>{Any(int64_t{1}), unit.constants[0].value});
  return Any(number(choices));
}

vm::Limits tight_limits() {
  vm::Limits limits;
  limits.fuel = 1000;
  limits.memory = 1 << 20;
  limits.depth = 50;
  limits.stack_bytes = 64 << 10;
  limits.deadline = std::chrono::seconds(5);
  limits.threads = 1;
  return limits;
}

// Grows the unit's last function.
class Grower {
 public:
  Grower(Choices& choices, GeneratedUnit& made, Reach reach)
      : choices_(choices), made_(made), reach_(reach) {
    vm::Unit& unit = made_.unit;
    vm::FunctionUnit f;
    f.name = cat("f", unit.functions.size());
    for (uint64_t n = choices_.below(4); n > 0; --n) {
      f.params.push_back({.name = cat("p", n), .type = {}, .borrowed = choices_.one_in(3)});
      args_.push_back(argument(choices_, unit));
    }
    for (uint32_t i = 0; i < f.params.size(); ++i) {
      (f.params[i].borrowed ? scope_.borrowing : scope_.full).push_back(i);
    }
    scope_.registers = static_cast<uint32_t>(f.params.size());
    for (uint64_t n = scope_.borrowing.empty() ? 0 : choices_.below(3); n > 0; --n) {
      // Only what is written as borrowed borrows.
      lines_.push_back({vm::Opcode::Move,
                        {Arg::reg(scope_.registers), Arg::borrowed(scope_.borrowing.front())}});
      scope_.borrowing.push_back(scope_.registers++);
    }
    scope_.registers += static_cast<uint32_t>(2 + choices_.below(8));
    scope_.text = text_constants(unit);
    f.register_count = scope_.registers;
    unit.functions.push_back(std::move(f));
  }

  void grow() {
    std::vector<const OpcodeInfo*> leaving, others;
    for (const OpcodeInfo& info : vm::all_opcodes()) {
      (info.ends() && !info.jumps() ? leaving : others).push_back(&info);
    }
    for (int i = 0; i < 90; ++i) {
      if (choices_.one_in(6)) {
        try_pattern();
      } else {
        try_opcode(*choices_.of(others));
      }
    }
    for (int i = 0; i < 3 && !ended_; ++i) try_opcode(*choices_.of(leaving));
    if (!ended_ && choices_.one_in(4)) {
      const size_t before = lines_.size();
      if (!add_closure_call(true) || !keep_from(before)) lines_.resize(before);
    }
    set_code();
    for (const Line& line : lines_) ++made_.executed[line.opcode];
    if (reach_ == Reach::Found) find_reached();
    if (failing_ && choices_.one_in(4)) {
      lines_.push_back(*failing_);
      set_code();
    }
  }

 private:
  vm::FunctionUnit& function() { return made_.unit.functions.back(); }

  // Sets the function's code including its end, which returns a tuple of all registers, with None
  // for those that borrow.
  void set_code() {
    std::vector<Line> whole = lines_;
    const Arg tuple = Arg::reg(scope_.registers - 1);
    std::vector<Arg> all = {tuple};
    for (uint32_t r = 0; r < scope_.registers; ++r) {
      all.push_back(scope_.borrows(r) ? Arg::none() : Arg::reg(r));
    }
    whole.push_back({vm::Opcode::AllocTuple, std::move(all)});
    whole.push_back({vm::Opcode::Ret, {tuple}});
    // Labels after the last line refer to that end.
    for (Line& line : whole) {
      for (Arg& a : line.operands) {
        const auto end = static_cast<uint32_t>(lines_.size());
        if (a.is(ArgKind::Label) && a.index() > end) a = Arg::label(end);
      }
    }
    function().code = encode(whole);
  }

  // Tries several times, since some instructions need operands of rare types.
  void try_opcode(const OpcodeInfo& info) {
    for (int i = 0; i < 4 && !try_line(info); ++i) {
    }
  }

  // Appends an instruction of that opcode, if the function still returns.
  bool try_line(const OpcodeInfo& info) {
    scope_.lines = static_cast<uint32_t>(lines_.size());
    std::optional<Line> line = make_line(choices_, info, scope_, made_.unit);
    if (!line) return false;
    const size_t before = lines_.size();
    lines_.push_back(*line);
    if (info.opcode == vm::Opcode::Concurrent && !add_group(line->operands[0].value())) {
      lines_.resize(before);
      return false;
    }
    if (!keep_from(before)) return false;
    ended_ = info.ends() && !info.jumps();
    return true;
  }

  // Keeps the lines from `before` on if the function still returns, and notes the registers'
  // values.
  bool keep_from(size_t before) {
    set_code();
    Any result;
    ++made_.tried;
    if (!runs(&result)) {
      if (lines_.size() == before + 1) failing_ = std::move(lines_.back());
      lines_.resize(before);
      return false;
    }
    ++made_.kept;
    const auto* registers = result.as_object<ArrayObj>();
    if (!registers || registers->size != static_cast<int64_t>(scope_.registers)) return true;
    scope_.full.clear();
    for (uint32_t r = 0; r < scope_.registers; ++r) {
      if (!registers->begin()[r].is_none() && !scope_.borrows(r)) scope_.full.push_back(r);
    }
    return true;
  }

  // ---- patterns ----

  void try_pattern() {
    const size_t before = lines_.size();
    const auto made = [&] {
      switch (choices_.below(10)) {
        case 0:
          return add_branch();
        case 1:
          return add_step();
        case 2:
          return add_element();
        case 3:
          return add_set();
        case 4:
          return add_integers();
        case 5:
          return add_tensor_in_storage();
        case 6:
          return add_closure_call(false);
        case 7:
          return add_match();
        case 8:
          return add_copies();
        default:
          return add_tail_call();
      }
    }();
    if (made) {
      keep_from(before);
    } else {
      lines_.resize(before);
    }
  }

  // A register that doesn't borrow, other than these.
  std::optional<Arg> other_register(std::initializer_list<Arg> taken) {
    for (int i = 0; i < 20; ++i) {
      const Arg reg = Arg::reg(index(choices_, scope_.registers));
      if (!scope_.borrows(reg.index()) && std::find(taken.begin(), taken.end(), reg) == taken.end())
        return reg;
    }
    return std::nullopt;
  }
  Arg small(int64_t least = 0) { return Arg::imm(least + static_cast<int64_t>(choices_.below(4))); }
  Arg ahead() { return Arg::label(static_cast<uint32_t>(lines_.size() + 1 + choices_.below(3))); }
  void add(vm::Opcode opcode, std::vector<Arg> operands) {
    lines_.push_back({opcode, std::move(operands)});
  }
  vm::Opcode comparison() {
    std::vector<vm::Opcode> all;
    for (const OpcodeInfo& info : vm::all_opcodes()) {
      if (info.op_class == vm::OpClass::Comparison) all.push_back(info.opcode);
    }
    return choices_.of(all);
  }

  // Two integers, of which instructions make something more often than of other values.
  bool add_integers() {
    for (int i = 0; i < 2; ++i) {
      const auto reg = other_register({});
      if (!reg) return false;
      add(vm::Opcode::LoadInt, {*reg, Arg::imm(number(choices_))});
    }
    return true;
  }

  // A comparison and the branch on it.
  bool add_branch() {
    const auto a = other_register({});
    if (!a) return false;
    const auto b = other_register({*a}), to = other_register({*a});
    if (!b || !to) return false;
    add(vm::Opcode::LoadInt, {*a, small()});
    const bool immediate = choices_.one_in(2);
    if (!immediate) add(vm::Opcode::LoadInt, {*b, small()});
    add(comparison(), {*to, *a, immediate ? small() : *b});
    add(vm::Opcode::If, {*to, ahead()});
    return true;
  }

  // A loop that counts to a bound and whose step is its end.
  bool add_step() {
    const auto counter = other_register({});
    if (!counter) return false;
    const auto bound = other_register({*counter}), to = other_register({*counter});
    if (!bound || !to || *bound == *to) return false;
    const bool immediate = choices_.one_in(2), up = choices_.one_in(2);
    const int64_t turns = 1 + static_cast<int64_t>(choices_.below(4));
    add(vm::Opcode::LoadInt, {*counter, Arg::imm(up ? 0 : turns)});
    if (!immediate) add(vm::Opcode::LoadInt, {*bound, Arg::imm(up ? turns : 0)});
    const auto start = static_cast<uint32_t>(lines_.size());
    if (choices_.one_in(2)) add(vm::Opcode::LoadInt, {*to, small()});
    add(up ? vm::Opcode::Add : vm::Opcode::Sub, {*counter, *counter, Arg::imm(1)});
    const Arg other = immediate ? Arg::imm(up ? turns : 0) : *bound;
    add(choices_.one_in(3) ? vm::Opcode::Eq
        : up               ? vm::Opcode::Ge
                           : vm::Opcode::Le,
        {*to, *counter, other});
    add(vm::Opcode::If, {*to, Arg::label(start)});
    return true;
  }

  // An array, and a field of it or its size, at a register.
  bool add_element() {
    const auto array = other_register({});
    if (!array) return false;
    const auto at = other_register({*array}), to = other_register({});
    if (!at || !to) return false;
    add(vm::Opcode::AllocTuple, {*array, small(), *array, Arg::none()});
    add(vm::Opcode::LoadInt, {*at, Arg::imm(static_cast<int64_t>(choices_.below(3)))});
    add(vm::Opcode::GetField, {*to, *array, *at});
    return true;
  }

  bool add_set() {
    const auto array = other_register({});
    if (!array) return false;
    const auto at = other_register({*array});
    if (!at) return false;
    add(vm::Opcode::AllocTuple, {*array, small(), small()});
    add(vm::Opcode::LoadInt, {*at, Arg::imm(static_cast<int64_t>(choices_.below(2)))});
    if (choices_.one_in(3)) add(vm::Opcode::AllocTuple, {Arg::reg(scope_.registers - 1), *array});
    const Arg value = choices_.one_in(2) ? small() : *at;
    add(vm::Opcode::ArraySet, {*array, Arg::last(array->index()), *at, value});
    return true;
  }

  // A block, and a tensor of a shape in it.
  bool add_tensor_in_storage() {
    const auto storage = other_register({}), tensor = other_register({});
    if (!storage) return false;
    const auto shape = other_register({*storage});
    if (!shape || !tensor) return false;
    add(vm::Opcode::AllocStorage, {*storage, Arg::imm(256), Arg::imm(64), Arg::device(kCpu)});
    add(vm::Opcode::MakeShape, {*shape, small(), small()});
    const Arg used = choices_.one_in(3) ? Arg::last(storage->index()) : *storage;
    add(vm::Opcode::AllocTensorReg,
        {*tensor, used, Arg::imm(0), Arg::dtype(choices_.of(kDtypes)), *shape});
    if (choices_.one_in(2)) add(vm::Opcode::ReshapeTensorReg, {*tensor, *tensor, *shape});
    return true;
  }

  // A tensor, and the match of its type.
  bool add_match() {
    const auto tensor = other_register({});
    if (!tensor) return false;
    const auto size = other_register({*tensor});
    if (!size) return false;
    const Arg dtype = Arg::dtype(choices_.of(kDtypes));
    const auto imm = [](vm::DimMatch match) { return Arg::imm(static_cast<int64_t>(match)); };
    add(vm::Opcode::NewTensor, {*tensor, Arg::device(kCpu), dtype, Arg::imm(2), Arg::imm(3)});
    add(vm::Opcode::MatchTensor, {*tensor, dtype, imm(vm::DimMatch::Store), *size,
                                  imm(vm::DimMatch::EqualsImmediate), Arg::imm(3)});
    return true;
  }

  // A tensor, and copies of it that may be made at the same time.
  bool add_copies() {
    const auto copies = [](const vm::PackedName& p) { return p.name == "vm.tensor_copy"; };
    const auto copy = std::ranges::find_if(made_.unit.packed, copies);
    const auto tensor = other_register({});
    if (!tensor || copy == made_.unit.packed.end()) return false;
    const Arg callee = Arg::packed(static_cast<uint32_t>(copy - made_.unit.packed.begin()));
    const Arg dtype = Arg::dtype(choices_.of(kDtypes));
    const int64_t count = 2 + static_cast<int64_t>(choices_.below(2));
    add(vm::Opcode::NewTensor, {*tensor, Arg::device(kCpu), dtype, small(1), small(1)});
    add(vm::Opcode::Concurrent, {Arg::imm(count)});
    for (int64_t i = 0; i < count; ++i) add(vm::Opcode::CallPacked, {Arg::none(), callee, *tensor});
    return true;
  }

  // A closure of an earlier function, which captures some of its arguments and is called with the
  // others.
  bool add_closure_call(bool leaves) {
    const size_t earlier = made_.unit.functions.size() - 1;
    if (earlier == 0) return false;
    const uint32_t callee = index(choices_, earlier);
    const auto& params = made_.unit.functions[callee].params;
    const auto closure = other_register({}), to = other_register({});
    if (!closure || !to || std::ranges::any_of(params, &vm::Param::borrowed)) return false;
    const auto captures = static_cast<size_t>(choices_.below(params.size() + 1));
    std::vector<Arg> made = {*closure, Arg::func(callee)};
    std::vector<Arg> call = {*to, *closure};
    for (size_t i = 0; i < params.size(); ++i) {
      (i < captures ? made : call).push_back(choices_.one_in(2) ? small() : Arg::none());
    }
    add(vm::Opcode::AllocClosure, std::move(made));
    if (!leaves) {
      add(vm::Opcode::CallClosure, std::move(call));
      return true;
    }
    call.erase(call.begin());
    add(vm::Opcode::TailCallClosure, std::move(call));
    return true;
  }

  // A tail call of the function itself with its parameters, a few times: one of them is a number
  // that counts down.
  bool add_tail_call() {
    const vm::FunctionUnit& f = function();
    if (!scope_.borrowing.empty()) return false;
    for (uint32_t i = 0; i < f.params.size(); ++i) {
      if (args_[i].type_index != TypeIndex::Int || args_[i].v.i < -1000 || args_[i].v.i > 1000)
        continue;
      const auto to = other_register({});
      if (!to || to->index() < f.params.size()) return false;
      std::vector<Arg> call = {Arg::func(static_cast<uint32_t>(made_.unit.functions.size() - 1))};
      for (uint32_t p = 0; p < f.params.size(); ++p) call.push_back(Arg::reg(p));
      const int64_t end = args_[i].v.i - 2;
      add(vm::Opcode::Sub, {Arg::reg(i), Arg::reg(i), Arg::imm(1)});
      add(vm::Opcode::Gt, {*to, Arg::reg(i), Arg::imm(end)});
      add(vm::Opcode::If, {*to, Arg::label(static_cast<uint32_t>(lines_.size() + 2))});
      add(vm::Opcode::TailCall, std::move(call));
      return true;
    }
    return false;
  }

  // ---- what is reached ----

  // An instruction is reached if a `fatal` in its place ends the call.
  void find_reached() {
    std::vector<bool> reached(lines_.size());
    uint64_t in_group = 0;  // calls that are left of a group, whose first instruction is reached
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (in_group > 0) {
        --in_group;
        reached[i] = reached[i - 1];
        continue;
      }
      const Line line =
          std::exchange(lines_[i], Line{vm::Opcode::Fatal, {Arg::constant(scope_.text.front())}});
      set_code();
      reached[i] = stops();
      lines_[i] = line;
      if (line.opcode == vm::Opcode::Concurrent) {
        in_group = static_cast<uint64_t>(line.operands[0].value());
      }
    }
    set_code();
    made_.reached.push_back(std::move(reached));
  }

  bool stops() {
    const auto& text = made_.unit.constants[scope_.text.front()].value;
    try {
      Any result;
      call(&result);
      return false;
    } catch (const Error& e) {
      return e.render().find(std::string(text.as<String>().view())) != std::string::npos;
    }
  }

  // Appends the calls of a group.
  bool add_group(int64_t count) {
    for (; count > 0; --count) {
      std::optional<Line> call =
          make_line(choices_, vm::info_of(vm::Opcode::CallPacked), scope_, made_.unit);
      if (!call) return false;
      call->operands[0] = Arg::none();
      for (Arg& a : call->operands) {
        if (a.is(ArgKind::LastUse)) a = Arg::reg(a.index());
      }
      lines_.push_back(*std::move(call));
    }
    return true;
  }

  void call(Any* result) {
    vm::Machine m(vm::Program::from_unit(made_.unit), tight_limits());
    const std::vector<AnyView> views(args_.begin(), args_.end());
    *result = m.call(static_cast<uint32_t>(made_.unit.functions.size() - 1), views);
  }

  // Whether the function returns. If it gives an error, the instruction is dropped; an error that
  // the program was refused or that the machine misbehaves is rethrown.
  bool runs(Any* result) {
    try {
      call(result);
      return true;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal || e.kind() == ErrorKind::Damaged) {
        throw Error(ErrorKind::Internal, cat("a generated program fails: ", e.render()));
      }
      return false;
    }
  }

  Choices& choices_;
  GeneratedUnit& made_;
  const Reach reach_;
  Scope scope_;
  std::vector<Any> args_;
  std::vector<Line> lines_;
  std::optional<Line> failing_;
  bool ended_ = false;
};

}  // namespace

uint64_t Choices::below(uint64_t n) {
  if (n <= 1) return 0;
  if (bytes_.empty()) return random_() % n;
  uint64_t v = 0;
  for (uint64_t last = n - 1; last > 0 && !bytes_.empty(); last >>= 8) {
    v = v << 8 | bytes_.front();
    bytes_ = bytes_.subspan(1);
  }
  return v % n;
}

std::optional<Line> make_line(Choices& choices, const OpcodeInfo& info, const Scope& scope,
                              const vm::Unit& unit) {
  return LineMaker(choices, info, scope, unit).make();
}

std::vector<vm::Word> encode(std::span<const Line> lines) {
  std::vector<uint32_t> offsets;
  uint32_t words = 0;
  for (const Line& line : lines) {
    offsets.push_back(words);
    words += 1 + static_cast<uint32_t>(line.operands.size());
  }
  offsets.push_back(words);
  std::vector<vm::Word> code;
  for (const Line& line : lines) {
    code.push_back(vm::encode_header(line.opcode, static_cast<uint32_t>(line.operands.size())));
    for (Arg a : line.operands) {
      code.push_back(a.is(ArgKind::Label) ? Arg::label(offsets.at(a.index())).word : a.word);
    }
  }
  return code;
}

GeneratedUnit make_unit(Choices& choices, Reach reach) {
  GeneratedUnit made;
  add_tables(made.unit);
  for (uint64_t n = 1 + choices.below(3); n > 0; --n) Grower(choices, made, reach).grow();
  return made;
}

}  // namespace tenon::fuzz
