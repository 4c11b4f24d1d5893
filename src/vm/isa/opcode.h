// Opcodes as data: the rows of opcodes.def, with their operand lists taken apart.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "vm/isa/short_text.h"

namespace tenon::vm {

enum class Opcode : uint16_t {
#define TENON_OPCODE(identifier, mnemonic, number, ...) identifier = number,
#include "vm/isa/opcodes.def"
#undef TENON_OPCODE
};

enum OpcodeFlags : uint8_t {
  kEnds = 1,   // control never reaches the next instruction
  kCalls = 2,  // seen by an instrument
  kJumps = 4,  // has label operands
};

// What an operand may be; opcodes.def explains each. Dim and Case take two words.
enum class OperandKind : uint8_t {
  Def,
  Use,
  Value,
  Int,
  Imm,
  Const,
  Func,
  Packed,
  Label,
  Dtype,
  Device,
  Dim,
  Case,
};
std::string_view operand_kind_name(OperandKind kind);  // "def", "use", ...
constexpr uint32_t words_of(OperandKind kind) {
  return kind == OperandKind::Dim || kind == OperandKind::Case ? 2 : 1;
}

struct OperandSpec {
  ShortText<13> short_name;
  OperandKind kind = OperandKind::Def;
  bool list = false;  // any number of them; only the last operand

  constexpr std::string_view name() const { return short_name; }
};

inline constexpr int kMaxOperands = 5;

struct OpcodeInfo {
  Opcode opcode{};
  ShortText<18> mnemonic;
  uint8_t flags = 0;
  uint32_t since = 0;
  OperandSpec operands[kMaxOperands];
  uint8_t operand_count = 0;
  uint32_t fixed_words = 0;  // of the operands before the list

  constexpr std::span<const OperandSpec> specs() const { return {operands, operand_count}; }
  constexpr bool has_list() const { return operand_count && operands[operand_count - 1].list; }
  // The spec of operand word `index`, and for Dim and Case which of its two words that is.
  const OperandSpec& spec_at(uint32_t word_index, uint32_t* part = nullptr) const;
};

// All rows, in the order of opcodes.def.
std::span<const OpcodeInfo> all_opcodes();
// Null when no instruction has that number or mnemonic.
const OpcodeInfo* find_opcode(uint32_t number);
const OpcodeInfo* find_opcode(std::string_view mnemonic);
const OpcodeInfo& info_of(Opcode opcode);
// The line of register-transfer semantics: for documents, not for the runtime.
std::string_view semantics_of(Opcode opcode);

}  // namespace tenon::vm
