// The positions of an instruction's operands by name, computed from the rows of opcodes.def when
// the program is compiled: an unknown name doesn't compile.
//
//   instruction.arg(operand(Opcode::AllocStorage, "size"))
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "vm/isa/opcode.h"

namespace tenon::vm {

// The operands of the opcode's row, as the table writes them: "dst:def dims:int*rank".
constexpr std::string_view operand_row(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(identifier, mnemonic, number, op_class, operands, ...) \
  case Opcode::identifier:                                                  \
    return operands;
#include "vm/isa/opcodes.def"
    case Opcode::None:
      break;
  }
  return {};
}

// One operand of a row: "name:kind", "name:kind*" or "name:kind*bound".
struct OperandText {
  std::string_view name;
  OperandKind kind{};
  bool list = false;
  std::string_view bound;
};

constexpr OperandKind operand_kind_named(std::string_view text) {
#define TENON_OPERAND_KIND(identifier, name, ...) \
  if (text == name) return OperandKind::identifier;
#include "vm/isa/operand_kinds.def"
  throw std::logic_error("unknown operand kind");
}

// Removes the first operand from what is left of a row.
constexpr OperandText take_operand(std::string_view& row) {
  const std::string_view item = row.substr(0, row.find(' '));
  row.remove_prefix(std::min(item.size() + 1, row.size()));
  const size_t colon = item.find(':'), star = std::min(item.find('*'), item.size());
  return {item.substr(0, colon), operand_kind_named(item.substr(colon + 1, star - colon - 1)),
          star < item.size(), item.substr(std::min(star + 1, item.size()))};
}

// The operand's word in an instruction; of a list or a pair, the first. Every operand before it
// takes one word, since lists and pairs are last.
consteval uint32_t operand(Opcode opcode, std::string_view name) {
  std::string_view row = operand_row(opcode);
  for (uint32_t word = 0; !row.empty(); ++word) {
    if (take_operand(row).name == name) return word;
  }
  throw std::logic_error("the instruction has no operand of this name");
}

// Whether the pre-decoder keeps operands of that role as values (Operands::args in
// vm/interp/op.h).
constexpr bool is_value(OperandRole role) {
  return role == OperandRole::ReadsValue || role == OperandRole::ReadsNumber ||
         role == OperandRole::Literal;
}

// The operand's place among the instruction's values; of a list, the first item's.
consteval uint32_t value_operand(Opcode opcode, std::string_view name) {
  std::string_view row = operand_row(opcode);
  for (uint32_t value = 0; !row.empty();) {
    const OperandText operand = take_operand(row);
    const bool counts = is_value(role_of(operand.kind));
    if (counts && operand.name == name) return value;
    value += counts;
  }
  throw std::logic_error("the instruction has no value of this name");
}

}  // namespace tenon::vm
