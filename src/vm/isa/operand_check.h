// The checks on operands that follow from the table: the verifier runs them on every instruction of
// a file, the builder on every emitted one, the assembler on every line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/isa/instruction.h"

namespace tenon::vm {

enum class Rule : uint8_t {
#define TENON_RULE(identifier, name, text) identifier,
#include "vm/isa/rules.def"
#undef TENON_RULE
};
std::string_view rule_name(Rule rule);  // "register-range"
std::string_view rule_text(Rule rule);
std::span<const Rule> all_rules();

struct Violation {
  Rule rule{};
  uint32_t operand = 0;  // index of the operand word
  std::string found, expected;
};

// The kinds of operand word accepted at word `part` of an operand, as bits 1 << ArgKind.
uint16_t accepted_kinds(OperandKind kind, uint32_t part);

// The sizes of the tables that operands index.
struct Bounds {
  uint32_t registers = 0;
  uint32_t constants = 0;
  uint32_t functions = 0;
  uint32_t packed = 0;
  uint32_t code_words = 0;
};

// Checks counts, kinds, and immediates with a restricted range.
std::optional<Violation> check_operand_kinds(const Instruction& instruction);
// Checks indices; kinds must have been checked before.
std::optional<Violation> check_operand_ranges(const Instruction& instruction, const Bounds& bounds);

}  // namespace tenon::vm
