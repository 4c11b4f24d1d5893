// The checks on operands that follow from the table: the verifier runs them on every instruction of
// a file, the builder on every emitted one, the assembler on every line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/isa/instruction.h"
#include "vm/isa/rule.h"

namespace tenon::vm {

struct Violation {
  Rule rule{};
  uint32_t operand = 0;  // index of the operand word
  std::string found, expected;
};

// The kinds of operand word accepted at word `part` of an operand, as bits 1 << ArgKind.
uint16_t accepted_kinds(OperandKind kind, uint32_t part);

// The range of an operand kind's immediates, as operand_kinds.def states it.
struct ImmediateRange {
  std::string_view what;  // "a tag"
  int64_t least, most;
  bool is_power;  // only powers of two

  bool holds(int64_t v) const;
};
// Of a dim, the range of its first word. Nullopt if the kind's immediates are not limited.
std::optional<ImmediateRange> immediate_range(OperandKind kind);
std::string to_text(const ImmediateRange& range);  // "a tag from 0 to 9"

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
