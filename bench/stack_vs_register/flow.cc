#include "flow.h"

#include <algorithm>

#include "support/error.h"
#include "support/text.h"
#include "vm/isa/code_builder.h"
#include "vm/isa/operand_index.h"

namespace tenon::bench {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::OperandRole;

void read_operands(Step& step, const std::vector<int32_t>& step_at) {
  const vm::Instruction& in = step.instruction;
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    const OperandRole role = vm::role_of(in, i);
    const Arg arg = in.arg(i);
    if (role == OperandRole::ReadsNumber && arg.is(ArgKind::LastUse)) {
      step.reads.push_back(Arg::reg(arg.index()));  // it keeps its number
    } else if (role == OperandRole::ReadsValue || role == OperandRole::ReadsNumber) {
      step.reads.push_back(arg);
    } else if (role == OperandRole::Writes && arg.is_register() && in.opcode() != Opcode::Kill) {
      if (step.writes >= 0) fail_unsupported(in);
      step.writes = static_cast<int32_t>(arg.index());
    } else if (role == OperandRole::Target) {
      if (step.target >= 0) fail_unsupported(in);
      step.target = step_at[arg.index()];
    }
  }
  if (in.opcode() == Opcode::GetField) step.reads.resize(1);  // without the index
  // The frame ends with the instruction.
  if (in.opcode() == Opcode::Ret && step.reads[0].is(ArgKind::Register)) {
    step.reads[0] = Arg::last(step.reads[0].index());
  }
  // Only the last of several operands that are one register can move its value.
  for (size_t i = 0; i < step.reads.size(); ++i) {
    for (size_t j = i + 1; j < step.reads.size(); ++j) {
      Arg &a = step.reads[i], &b = step.reads[j];
      if (!a.is(ArgKind::LastUse) || !b.is_register() || a.index() != b.index()) continue;
      b = a;
      a = Arg::reg(a.index());
    }
  }
}

void find_live(std::vector<Step>& steps, size_t registers) {
  for (Step& step : steps) step.live.assign(registers, false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = steps.size(); i-- > 0;) {
      std::vector<bool> live(registers, false);
      auto add = [&](size_t next) {
        const Step& step = steps[next];
        for (size_t r = 0; r < registers; ++r) {
          if (step.live[r] && static_cast<int32_t>(r) != step.writes) live[r] = true;
        }
        for (const Arg a : step.reads) {
          if (a.is_register()) live[a.index()] = true;
        }
      };
      if (!steps[i].instruction.info->ends() && i + 1 < steps.size()) add(i + 1);
      if (steps[i].target >= 0) add(static_cast<size_t>(steps[i].target));
      changed = changed || live != steps[i].live;
      steps[i].live = std::move(live);
    }
  }
}

// These machines count what the product borrows; they move it where nothing reads it again.
void count_borrowed(Step& step) {
  for (size_t i = step.reads.size(); i-- > 0;) {
    Arg& a = step.reads[i];
    if (!a.is(ArgKind::Borrowed)) continue;
    const bool is_last =
        !step.live[a.index()] && std::none_of(step.reads.begin(), step.reads.end(),
                                              [&](Arg b) { return b == Arg::last(a.index()); });
    a = is_last ? Arg::last(a.index()) : Arg::reg(a.index());
  }
}

void add_step(std::vector<Step>& steps, Opcode opcode, std::initializer_list<Arg> operands,
              std::span<const Arg> list = {}) {
  vm::CodeBuilder builder;
  builder.emit(opcode, operands, list);
  std::vector<vm::CodeSpan> spans;
  Step step{builder.finish(&spans), {}, {}, -1, -1, false, {}};
  vm::decode(step.code, 0, &step.instruction);
  steps.push_back(std::move(step));
}

void release_last_use(std::vector<Step>& steps, Arg object) {
  const Arg killed[] = {Arg::reg(object.index())};
  if (object.is(ArgKind::LastUse)) add_step(steps, Opcode::Kill, {}, killed);
}

// The field that goes to the object's own register is read last.
void add_reads(std::vector<Step>& steps, const vm::Instruction& in) {
  const Arg object = in.arg(vm::operand(Opcode::TakeFields, "object"));
  const std::span<const vm::Word> fields = in.list();
  std::vector<int64_t> order;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (Arg(fields[i]).is_none()) continue;
    const bool is_last = Arg(fields[i]).index() == object.index();
    order.insert(is_last ? order.end() : order.begin(), static_cast<int64_t>(i));
  }
  for (const int64_t& i : order) {
    const Arg source = &i == &order.back() ? object : Arg::reg(object.index());
    add_step(steps, Opcode::GetField, {Arg(fields[static_cast<size_t>(i)]), source, Arg::imm(i)});
  }
  if (order.empty()) release_last_use(steps, object);
}

}  // namespace

std::vector<Step> read_steps(const vm::FunctionUnit& function) {
  std::vector<Step> steps;
  std::vector<int32_t> step_at(function.code.size(), -1);
  vm::Instruction in;
  for (uint32_t at = 0; at < function.code.size(); at += in.words()) {
    step_at[at] = static_cast<int32_t>(steps.size());
    if (!vm::decode(function.code, at, &in)) {
      throw Error(ErrorKind::Damaged, cat("the code of ", function.name, " is damaged"));
    }
    if (in.opcode() == Opcode::TakeFields) {
      add_reads(steps, in);
    } else if (in.opcode() == Opcode::ReuseAdt) {
      release_last_use(steps, in.arg(vm::operand(Opcode::ReuseAdt, "object")));
      std::vector<Arg> fields;
      for (const vm::Word word : in.list()) fields.emplace_back(word);
      add_step(steps, Opcode::AllocAdt,
               {in.arg(vm::operand(Opcode::ReuseAdt, "dst")),
                in.arg(vm::operand(Opcode::ReuseAdt, "tag"))},
               fields);
    } else if (in.opcode() == Opcode::BorrowField) {
      add_step(steps, Opcode::GetField, {in.arg(0), in.arg(1), in.arg(2)});
    } else if (in.opcode() == Opcode::Move && in.arg(0).is_none()) {
      release_last_use(steps, in.arg(1));
    } else {
      steps.emplace_back().instruction = in;
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    read_operands(steps[i], step_at);
    if (steps[i].target >= 0) steps[static_cast<size_t>(steps[i].target)].leads = true;
    if (steps[i].instruction.info->jumps() && i + 1 < steps.size()) steps[i + 1].leads = true;
  }
  if (!steps.empty()) steps[0].leads = true;
  find_live(steps, function.register_count);
  for (Step& step : steps) count_borrowed(step);
  return steps;
}

Opcode exchanged(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(...)
#define TENON_FAST_BINARY(identifier, mnemonic, number, exchanged, ...) \
  case Opcode::identifier:                                              \
    return Opcode::exchanged;
#define TENON_COMPARISON TENON_FAST_BINARY
#include "vm/isa/opcodes.def"
    default:
      return Opcode::None;
  }
}

bool is_float_operation(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(...)
#define TENON_FLOAT_BINARY(identifier, ...) case Opcode::identifier:
#define TENON_FLOAT_UNARY TENON_FLOAT_BINARY
#include "vm/isa/opcodes.def"
    return true;
    default:
      return false;
  }
}

uint64_t field_index(const vm::Instruction& instruction) {
  const Arg index = instruction.arg(vm::operand(Opcode::GetField, "index"));
  if (!index.is(ArgKind::Immediate)) fail_unsupported(instruction);
  return static_cast<uint64_t>(index.value());
}

void check_is_f64(const vm::Instruction& instruction) {
  const Arg dtype = instruction.arg(vm::operand(Opcode::ToFloat, "dtype"));
  if (dtype.as_dtype() != f64) fail_unsupported(instruction);
}

void fail_unsupported(const vm::Instruction& instruction) {
  throw Error(ErrorKind::Unsupported,
              cat("the benchmark has no counterpart of this form of ", instruction.info->mnemonic));
}

CodeWriter::CodeWriter(Code& code, uint32_t function)
    : out_(code.bytes), function_(code.functions[function]) {
  const vm::FunctionUnit& unit = code.unit->functions[function];
  function_.name = unit.name;
  function_.entry = static_cast<uint32_t>(out_.size());
  function_.params = static_cast<uint32_t>(unit.params.size());
}

void CodeWriter::start_step() {
  function_.starts.push_back(static_cast<uint32_t>(out_.size()));
}

void CodeWriter::number(uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<uint8_t>(value | 0x80));
  out_.push_back(static_cast<uint8_t>(value));
}

void CodeWriter::jump(int32_t step) {
  jumps_.push_back({out_.size(), step});
  out_.resize(out_.size() + 2);
}

void CodeWriter::finish() {
  function_.end = static_cast<uint32_t>(out_.size());
  for (const Jump& jump : jumps_) {
    const int64_t distance = int64_t{function_.starts[static_cast<size_t>(jump.step)]} -
                             static_cast<int64_t>(jump.at + 2);
    if (distance != static_cast<int16_t>(distance)) {
      throw Error(ErrorKind::Unsupported, "a jump is too long for the benchmark's code");
    }
    out_[jump.at] = static_cast<uint8_t>(distance);
    out_[jump.at + 1] = static_cast<uint8_t>(distance >> 8);
  }
}

}  // namespace tenon::bench
