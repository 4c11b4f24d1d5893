#include "codegen/bytecode/arrange_counters.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "codegen/bytecode/comparison.h"
#include "support/poll.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::Opcode;
using vm::OperandRole;

namespace {

// The operands of binary operations, comparisons among them.
constexpr uint32_t kResult = vm::operand(Opcode::Add, "dst"), kLeft = vm::operand(Opcode::Add, "a"),
                   kRight = vm::operand(Opcode::Add, "b");

std::vector<uint32_t> count_uses(const VirtualCode& code) {
  std::vector<uint32_t> uses(code.register_count(), 0);
  auto use = [&](Arg arg) {
    if (arg.is_register()) ++uses[arg.index()];
  };
  Ticker ticker;
  for (BlockId id : code.order()) {
    const VirtualBlock& block = code.block(id);
    for (const VirtualInstruction& instruction : block.instructions) {
      ticker.tick();
      for_each_register(instruction, [&](uint32_t i, OperandRole role) {
        if (role != OperandRole::Writes) use(instruction.operands[i]);
      });
    }
    use(block.value);
    for (Arg arg : block.args) use(arg);
  }
  return uses;
}

// Whether it adds a constant to `variable`; the immediate of an addition may come first.
bool adds_constant(const VirtualInstruction& instruction, Register variable) {
  if (instruction.opcode != Opcode::Add && instruction.opcode != Opcode::Sub) return false;
  const Arg a = instruction.operands[kLeft], b = instruction.operands[kRight];
  if (a == Arg::reg(variable)) return b.is(vm::ArgKind::Immediate);
  return instruction.opcode == Opcode::Add && b == Arg::reg(variable) &&
         a.is(vm::ArgKind::Immediate);
}

// The register that the loop's condition compares with another value; if that is a loop variable,
// makes it the first operand.
std::optional<Register> compared(VirtualBlock* test, const std::vector<Register>& variables) {
  if (test->instructions.empty() || !test->value.is_register()) return std::nullopt;
  VirtualInstruction& comparison = test->instructions.back();
  const auto exchanged = exchange(comparison.opcode);
  if (!exchanged || comparison.operands[kResult] != test->value) return std::nullopt;
  auto is_variable = [&](Arg arg) {
    return arg.is_register() && std::ranges::find(variables, arg.index()) != variables.end();
  };
  if (!is_variable(comparison.operands[kLeft]) && is_variable(comparison.operands[kRight])) {
    std::swap(comparison.operands[kLeft], comparison.operands[kRight]);
    comparison.opcode = *exchanged;
  }
  if (!is_variable(comparison.operands[kLeft])) return std::nullopt;
  return comparison.operands[kLeft].index();
}

}  // namespace

void arrange_counters(VirtualCode* code) {
  if (code->loops().empty()) return;
  const std::vector<uint32_t> uses = count_uses(*code), places = code->places();
  for (const VirtualLoop& loop : code->loops()) {
    VirtualBlock& latch = code->block(loop.latch);
    const std::vector<Register>& variables = code->block(loop.header).params;
    std::unordered_map<Register, Register> next;  // next value to variable
    for (size_t i = 0; i < variables.size(); ++i) {
      if (latch.args[i].is_register() && uses[latch.args[i].index()] == 1) {
        next[latch.args[i].index()] = variables[i];
      }
    }
    const auto tested = compared(&code->block(loop.test), variables);
    std::vector<VirtualInstruction> counters;
    for (uint32_t place = places[loop.body]; place <= places[loop.latch]; ++place) {
      VirtualBlock& block = code->block(code->order()[place]);
      if (block.loop != latch.loop) continue;  // in an inner loop, so it may run more than once
      std::erase_if(block.instructions, [&](const VirtualInstruction& instruction) {
        if (!vm::info_of(instruction.opcode).has_result()) return false;
        const Arg result = instruction.operands[kResult];
        const auto counter = result.is_register() ? next.find(result.index()) : next.end();
        if (counter == next.end() || !adds_constant(instruction, counter->second)) return false;
        counters.push_back(instruction);
        return true;
      });
    }
    std::ranges::stable_sort(counters, std::less(), [&](const VirtualInstruction& instruction) {
      return next.at(instruction.operands[kResult].index()) == tested;
    });
    latch.instructions.insert(latch.instructions.end(), counters.begin(), counters.end());
  }
}

}  // namespace tenon::codegen
