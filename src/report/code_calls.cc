#include "report/code_calls.h"

#include <set>

#include "support/poll.h"
#include "support/text.h"

namespace tenon::report {
namespace {

std::optional<Callee> callee_of(const vm::Unit& unit, const vm::Instruction& instruction) {
  for (const vm::Word word : instruction.operands) {
    const vm::Arg arg(word);
    if (arg.is(vm::ArgKind::Function)) {
      return Callee{Callee::Kind::Function, unit.functions[arg.index()].name};
    }
    if (arg.is(vm::ArgKind::Packed)) {
      const vm::PackedName& packed = unit.packed[arg.index()];
      return Callee{packed.kernel ? Callee::Kind::Kernel : Callee::Kind::Packed, packed.name};
    }
  }
  return std::nullopt;
}

// Fills in what the step reads and writes. A call writes the registers in `fresh` among its
// arguments.
void read_operands(std::set<uint32_t>* fresh, CodeCall* call, CodeStep* step) {
  const vm::Instruction& instruction = step->instruction;
  for (uint32_t i = 0; i < instruction.operands.size(); ++i) {
    const vm::Arg arg = instruction.arg(i);
    const bool is_argument = call && i >= instruction.info->fixed_words;
    const bool is_output = is_argument && arg.is_register() && fresh->erase(arg.index()) > 0;
    if (is_argument) call->arguments.push_back({is_output, arg.is(vm::ArgKind::Constant)});
    if (is_output) call->outputs.push_back(arg.index());
    if (arg.is(vm::ArgKind::Constant)) step->constants.push_back(arg.index());
    if (!arg.is_register()) continue;
    const vm::OperandRole role = vm::role_of(instruction, i);
    if (role == vm::OperandRole::Writes) {
      step->writes.push_back(arg.index());
      continue;
    }
    step->reads.push_back(arg.index());
    if (role == vm::OperandRole::ReadsValue && !is_output) step->inputs.push_back(arg.index());
  }
}

}  // namespace

std::string Callee::label() const {
  return cat(kind == Kind::Function ? "@" : "", name);
}

void for_each_step(const vm::Unit& unit, const vm::FunctionUnit& function,
                   const std::function<void(const CodeStep&)>& f) {
  std::set<uint32_t> fresh;  // registers of tensors that nothing has written yet
  size_t span = 0, number = 0;
  vm::Instruction instruction;
  for (uint32_t at = 0; at < function.code.size() && vm::decode(function.code, at, &instruction);
       at += instruction.words()) {
    if (number % 1024 == 0) poll();
    while (span < function.spans.size() && function.spans[span].offset <= at) ++span;
    CodeStep step;
    step.offset = at;
    step.number = number++;
    step.instruction = instruction;
    step.callee = callee_of(unit, instruction);
    CodeCall call;
    if (instruction.info->calls()) {
      step.call = &call;
      if (step.callee) call.callee = *step.callee;
      if (span > 0) call.from = &unit.spans[function.spans[span - 1].span];
    }
    read_operands(&fresh, step.call ? &call : nullptr, &step);
    f(step);
    for (const uint32_t reg : step.writes) {
      if (instruction.info->makes_fresh()) {
        fresh.insert(reg);
      } else {
        fresh.erase(reg);
      }
    }
  }
}

}  // namespace tenon::report
