// The generator reaches every instruction of the table and every rule of the verifier.
#include "instruction_generator.h"

#include <gtest/gtest.h>

#include <set>

#include "near_miss.h"
#include "support/error_testing.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/asm/disassemble.h"
#include "vm/builtin/register.h"

namespace tenon::fuzz {
namespace {

constexpr uint64_t kSeeds = 60;

std::vector<GeneratedUnit> generated() {
  vm::register_builtins();
  std::vector<GeneratedUnit> out;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Choices choices(seed);
    out.push_back(make_unit(choices));
  }
  return out;
}

const std::vector<GeneratedUnit>& units() {
  static const std::vector<GeneratedUnit> made = generated();
  return made;
}

TEST(InstructionGenerator, MakesProgramsThatTheVerifierAccepts) {
  for (const GeneratedUnit& made : units()) {
    EXPECT_EQ(failure_of([&] { vm::verify(made.unit); }), "no error");
    const std::string text = vm::disassemble(made.unit);
    EXPECT_EQ(vm::disassemble(vm::assemble(text)), text);
  }
}

TEST(InstructionGenerator, RepeatsAProgramOfItsSeed) {
  Choices once(7), again(7), other(8);
  const std::string text = vm::disassemble(make_unit(once).unit);
  EXPECT_EQ(vm::disassemble(make_unit(again).unit), text);
  EXPECT_NE(vm::disassemble(make_unit(other).unit), text);
}

TEST(InstructionGenerator, RunsEveryInstruction) {
  vm::register_builtins();
  std::set<vm::Opcode> executed;
  // All opcodes except `fatal`, which is never reached in functions that return. How many programs
  // this takes depends on the table; 100 have been enough.
  for (uint64_t seed = 0; seed < 1000 && executed.size() < vm::all_opcodes().size() - 1; ++seed) {
    Choices choices(seed);
    const GeneratedUnit made = make_unit(choices);
    for (const auto& [opcode, count] : made.executed) executed.insert(opcode);
    executed.erase(vm::Opcode::Fatal);
  }
  for (const vm::OpcodeInfo& info : vm::all_opcodes()) {
    if (info.opcode == vm::Opcode::Fatal) continue;
    EXPECT_TRUE(executed.contains(info.opcode)) << std::string_view(info.mnemonic);
  }
}

// The rule that a unit violates, or "".
std::string refusal(const vm::Unit& unit, const vm::VerifyContext& context) {
  try {
    vm::verify(unit, context);
  } catch (const Error& error) {
    for (const vm::Rule rule : vm::all_rules()) {
      if (names_rule(error, rule)) return std::string(rule_name(rule));
    }
    return error.render();
  }
  return "";
}

TEST(NearMiss, BreaksEachRuleAlone) {
  for (vm::Rule rule : vm::all_rules()) {
    int broken = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      vm::Unit unit = units()[seed].unit;
      vm::VerifyContext context;
      Choices choices(seed);
      if (!break_rule(choices, rule, unit, context)) continue;
      ++broken;
      EXPECT_EQ(refusal(unit, context), rule_name(rule)) << "of seed " << seed;
    }
    if (unbreakable(rule).empty()) {
      EXPECT_GT(broken, 0) << rule_name(rule) << " is broken in no unit";
    } else {
      EXPECT_EQ(broken, 0) << rule_name(rule);
    }
  }
}

// For each row of the table, matching operands are accepted, and operand words of other kinds, too
// few or too many are refused.
TEST(NearMiss, IsFoundInEveryOperandOfEveryInstruction) {
  vm::Unit tables = units()[0].unit;
  tables.functions.resize(1);
  for (const vm::OpcodeInfo& info : vm::all_opcodes()) {
    SCOPED_TRACE(std::string_view(info.mnemonic));
    Choices choices(static_cast<uint64_t>(info.opcode));
    for (int round = 0; round < 20; ++round) {
      const Scope scope{.registers = 4, .lines = 0, .text = {4}, .full = {0}, .borrowing = {3}};
      tables.functions[0].register_count = 4;
      const std::optional<Line> line = make_line(choices, info, scope, tables);
      ASSERT_TRUE(line);
      auto check = [&](const std::vector<vm::Arg>& operands) {
        const vm::Instruction made{
            &info, std::span(reinterpret_cast<const vm::Word*>(operands.data()), operands.size())};
        const std::optional<vm::Violation> violation = vm::check_operand_kinds(made);
        return violation ? std::string(rule_name(violation->rule)) : std::string();
      };
      EXPECT_EQ(check(line->operands), "");
      for (size_t i = 0; i < line->operands.size(); ++i) {
        uint32_t part = 0;
        const vm::OperandKind kind = info.spec_at(static_cast<uint32_t>(i), &part).kind;
        for (uint64_t k = 0; k <= vm::kArgKinds; ++k) {
          if (k < vm::kArgKinds && vm::accepted_kinds(kind, part) & 1u << k) continue;
          std::vector<vm::Arg> operands = line->operands;
          operands[i] = vm::Arg(k << 56);
          EXPECT_EQ(check(operands), "operand-kind") << "word " << i << ", kind " << k;
        }
      }
      std::vector<vm::Arg> fewer = line->operands;
      if (info.fixed_words > 0) {
        fewer.resize(info.fixed_words - 1);
        EXPECT_EQ(check(fewer), "operand-count");
      }
    }
  }
}

}  // namespace
}  // namespace tenon::fuzz
