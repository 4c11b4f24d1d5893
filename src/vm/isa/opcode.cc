#include "vm/isa/opcode.h"

#include <array>
#include <stdexcept>

namespace tenon::vm {
namespace {

// A failure here is a compile error: the table is parsed by the compiler.
constexpr OperandKind parse_kind(std::string_view text) {
  constexpr std::pair<std::string_view, OperandKind> kKinds[] = {
      {"def", OperandKind::Def},     {"use", OperandKind::Use},       {"value", OperandKind::Value},
      {"int", OperandKind::Int},     {"imm", OperandKind::Imm},       {"const", OperandKind::Const},
      {"func", OperandKind::Func},   {"packed", OperandKind::Packed}, {"label", OperandKind::Label},
      {"dtype", OperandKind::Dtype}, {"device", OperandKind::Device}, {"dim", OperandKind::Dim},
      {"case", OperandKind::Case},
  };
  for (const auto& [name, kind] : kKinds) {
    if (name == text) return kind;
  }
  throw std::logic_error("unknown operand kind");
}

constexpr OpcodeInfo parse_row(Opcode opcode, std::string_view mnemonic, std::string_view operands,
                               unsigned flags, uint32_t since) {
  OpcodeInfo info;
  info.opcode = opcode;
  info.mnemonic = mnemonic;
  info.flags = static_cast<uint8_t>(flags);
  info.since = since;
  while (!operands.empty()) {
    size_t end = operands.find(' ');
    std::string_view item = operands.substr(0, end);
    operands = end == std::string_view::npos ? "" : operands.substr(end + 1);
    if (info.operand_count == kMaxOperands || info.has_list()) {
      throw std::logic_error("too many operands, or a list before the last one");
    }
    OperandSpec& spec = info.operands[info.operand_count++];
    size_t colon = item.find(':');
    spec.short_name = item.substr(0, colon);
    item = item.substr(colon + 1);
    spec.list = item.ends_with('*');
    if (spec.list) item.remove_suffix(1);
    spec.kind = parse_kind(item);
    if (!spec.list) info.fixed_words += words_of(spec.kind);
  }
  return info;
}

constexpr OpcodeInfo kOpcodes[] = {
#define TENON_OPCODE(identifier, mnemonic, number, operands, flags, since, semantics) \
  parse_row(Opcode::identifier, mnemonic, operands, flags, since),
#include "vm/isa/opcodes.def"
#undef TENON_OPCODE
};
constexpr size_t kOpcodeNumbers = 256;

constexpr auto index_by_number() {
  std::array<int16_t, kOpcodeNumbers> index{};
  index.fill(-1);
  for (size_t i = 0; i < std::size(kOpcodes); ++i) {
    auto& slot = index.at(static_cast<size_t>(kOpcodes[i].opcode));
    if (slot >= 0 || kOpcodes[i].opcode == Opcode{0}) throw std::logic_error("number used twice");
    slot = static_cast<int16_t>(i);
  }
  return index;
}
constexpr auto kByNumber = index_by_number();

}  // namespace

std::string_view operand_kind_name(OperandKind kind) {
  constexpr std::string_view kNames[] = {"def",    "use",  "value",  "int",   "imm",
                                         "const",  "func", "packed", "label", "dtype",
                                         "device", "dim",  "case"};
  return kNames[static_cast<size_t>(kind)];
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
  throw std::out_of_range("no such operand word");
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
  if (!info) throw std::out_of_range("not an opcode");
  return *info;
}

std::string_view semantics_of(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(identifier, mnemonic, number, operands, flags, since, semantics) \
  case Opcode::identifier:                                                            \
    return semantics;
#include "vm/isa/opcodes.def"
#undef TENON_OPCODE
  }
  return "";
}

}  // namespace tenon::vm
