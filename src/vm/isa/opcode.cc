#include "vm/isa/opcode.h"

#include <algorithm>
#include <array>

#include "support/error.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {
namespace {

constexpr size_t kLongestKindName = longest({
#define TENON_OPERAND_KIND(identifier, name, ...) name,
#include "vm/isa/operand_kinds.def"
});
constexpr ShortText<kLongestKindName> kKindNames[] = {
#define TENON_OPERAND_KIND(identifier, name, ...) name,
#include "vm/isa/operand_kinds.def"
};

// The compiler parses the table: an error from here on is a compile error.

// How many operands there are with distinct names, and the longest of these names.
struct OperandNameSizes {
  size_t count = 0, longest = 0;
};
consteval OperandNameSizes operand_name_sizes() {
  OperandNameSizes sizes;
  std::string_view seen[kOpcodeNumbers * kMaxOperands];
  for (size_t number = 0; number < kOpcodeNumbers; ++number) {
    for (std::string_view row = operand_row(Opcode(number)); !row.empty();) {
      const std::string_view name = take_operand(row).name;
      const std::span earlier(seen, sizes.count);
      if (std::ranges::find(earlier, name) != earlier.end()) continue;
      seen[sizes.count++] = name;
      sizes.longest = std::max(sizes.longest, name.size());
    }
  }
  return sizes;
}
constexpr OperandNameSizes kOperandNameSizes = operand_name_sizes();

// The distinct names of operands.
struct OperandNames {
  ShortText<kOperandNameSizes.longest> names[kOperandNameSizes.count];
  uint8_t count = 0;

  // Adds the name unless it is there.
  constexpr uint8_t index_of(std::string_view name) {
    for (uint8_t i = 0; i < count; ++i) {
      if (names[i] == name) return i;
    }
    names[count] = name;
    return count++;
  }
};

constexpr OperandSpec parse_operand(const OperandText& text, OperandNames& names) {
  if (!text.bound.empty() && text.bound != "rank") {
    throw std::logic_error("unknown bound of a list");
  }
  return {names.index_of(text.name), text.kind, text.list, !text.bound.empty()};
}

// Whether the operand layout of this class can hold the operand.
constexpr bool class_holds(OpClass op_class, const OperandSpec& spec) {
  switch (spec.kind) {
    case OperandKind::Def:
      return !spec.list || op_class == OpClass::Unpack;
    case OperandKind::Reg:
      return op_class == OpClass::Kill;
    case OperandKind::Func:
    case OperandKind::Packed:
      return op_class == OpClass::Call || op_class == OpClass::Function;
    case OperandKind::Dim:
      return op_class == OpClass::Match;
    case OperandKind::Label:
      return op_class == OpClass::Goto || op_class == OpClass::If || op_class == OpClass::IfEq ||
             op_class == OpClass::Switch;
    case OperandKind::Case:
      return op_class == OpClass::Switch;
    default:
      return true;
  }
}

constexpr OpcodeInfo parse_row(OperandNames& names, Opcode opcode, std::string_view mnemonic,
                               OpClass op_class, std::string_view operands, unsigned flags,
                               unsigned since) {
  OpcodeInfo info;
  info.opcode = opcode;
  info.mnemonic = mnemonic;
  info.op_class = op_class;
  info.flags = static_cast<uint8_t>(flags);
  info.since = static_cast<uint8_t>(since);
  while (!operands.empty()) {
    if (info.operand_count == kMaxOperands || info.fixed_words != info.operand_count) {
      throw std::logic_error("too many operands, or a list or pair before the last one");
    }
    OperandSpec& spec = info.operands[info.operand_count++];
    spec = parse_operand(take_operand(operands), names);
    if (!class_holds(op_class, spec))
      throw std::logic_error("an operand that the class doesn't support");
    if (!spec.list) info.fixed_words = static_cast<uint8_t>(info.fixed_words + words_of(spec.kind));
  }
  return info;
}

constexpr size_t kRows = 0
#define TENON_OPCODE(...) +1
#include "vm/isa/opcodes.def"
    ;
struct Table {
  OperandNames names;
  std::array<OpcodeInfo, kRows> rows;
};
constexpr Table parse_table() {
  Table table;
  OperandNames& names = table.names;
  table.rows = {
#define TENON_OPCODE(identifier, mnemonic, number, op_class, operands, flags, since, semantics) \
  parse_row(names, Opcode::identifier, #mnemonic, OpClass::op_class, operands, flags, since),
#include "vm/isa/opcodes.def"
  };
  return table;
}
constexpr Table kTable = parse_table();
constexpr const std::array<OpcodeInfo, kRows>& kOpcodes = kTable.rows;

constexpr auto index_by_number() {
  std::array<int16_t, kOpcodeNumbers> index{};
  index.fill(-1);
  for (size_t i = 0; i < kOpcodes.size(); ++i) {
    auto& slot = index.at(static_cast<size_t>(kOpcodes[i].opcode));
    if (slot >= 0 || kOpcodes[i].opcode == Opcode::None)
      throw std::logic_error("number used twice");
    slot = static_cast<int16_t>(i);
  }
  return index;
}
constexpr auto kByNumber = index_by_number();

}  // namespace

std::string_view name_of(OperandKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

std::string_view form_of(OperandKind kind) {
  switch (kind) {
#define TENON_OPERAND_KIND(identifier, name, accepts, role, form, meaning) \
  case OperandKind::identifier:                                            \
    return form;
#include "vm/isa/operand_kinds.def"
  }
  return "";
}

std::string_view OperandSpec::name() const {
  return kTable.names.names[name_index];
}

const OperandSpec& OpcodeInfo::spec_at(uint32_t word_index, uint32_t* part) const {
  uint32_t word = 0;
  for (const OperandSpec& spec : specs()) {
    uint32_t width = words_of(spec.kind);
    if (spec.list || word_index < word + width) {
      if (part) *part = (word_index - word) % width;
      return spec;
    }
    word += width;
  }
  assertion_failed("word_index < word", __FILE__, __LINE__, cat("no operand word ", word_index));
}

std::span<const OpcodeInfo> all_opcodes() {
  return kOpcodes;
}

const OpcodeInfo* find_opcode(uint32_t number) {
  if (number >= kOpcodeNumbers || kByNumber[number] < 0) return nullptr;
  return &kOpcodes[kByNumber[number]];
}

const OpcodeInfo* find_opcode(std::string_view mnemonic) {
  for (const OpcodeInfo& info : kOpcodes) {
    if (info.mnemonic == mnemonic) return &info;
  }
  return nullptr;
}

const OpcodeInfo& info_of(Opcode opcode) {
  const OpcodeInfo* info = find_opcode(static_cast<uint32_t>(opcode));
  TENON_ASSERT(info, static_cast<uint32_t>(opcode), " isn't an opcode");
  return *info;
}

std::string_view semantics_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::None:
      break;
#define TENON_OPCODE(identifier, mnemonic, number, op_class, operands, flags, since, semantics) \
  case Opcode::identifier:                                                                      \
    return semantics;
#include "vm/isa/opcodes.def"
  }
  return "";
}

}  // namespace tenon::vm
