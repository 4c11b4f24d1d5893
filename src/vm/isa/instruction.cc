#include "vm/isa/instruction.h"

#include "object/device_name.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/isa/limits.h"

namespace tenon::vm {

Arg Arg::imm(int64_t value) {
  TENON_ASSERT(fits_immediate(value), "immediate ", value, " takes more than 56 bits");
  return {ArgKind::Immediate, value};
}

bool decode(std::span<const Word> code, uint32_t offset, Instruction* out, Rule* broken) {
  auto fail = [&](Rule rule) {
    if (broken) *broken = rule;
    return false;
  };
  if (offset >= code.size()) return fail(Rule::EndsInCode);
  Word header = code[offset];
  out->info = find_opcode(static_cast<uint32_t>(header & 0xffff));
  if (!out->info) return fail(Rule::OpcodeKnown);
  if (header >> 16 & 0xffff) return fail(Rule::ReservedBits);
  uint64_t count = header >> 32;
  if (count > kMaxOperandWords || count > code.size() - offset - 1) return fail(Rule::EndsInCode);
  out->operands = code.subspan(offset + 1, count);
  return true;
}

OperandRole role_of(OperandKind kind, uint32_t part, Arg first) {
  if (part == 0) return role_of(kind);
  if (kind == OperandKind::Case) return OperandRole::Target;
  switch (static_cast<DimMatch>(first.value())) {
    case DimMatch::Ignore:
      return OperandRole::Unused;
    case DimMatch::EqualsImmediate:
      return OperandRole::Literal;
    case DimMatch::EqualsRegister:
      return OperandRole::ReadsNumber;
    case DimMatch::Store:
      return OperandRole::Writes;
  }
  return OperandRole::Unused;
}

bool passes_in_place(const Instruction& call) {
  const std::span<const Word> arguments = call.list();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Arg argument(arguments[i]);
    if (!argument.is_register() || argument.index() != i) return false;
  }
  return true;
}

OperandRole role_of(const Instruction& instruction, uint32_t word) {
  uint32_t part = 0;
  const OperandKind kind = instruction.info->spec_at(word, &part).kind;
  return role_of(kind, part, instruction.arg(word - part));
}

std::string to_text(Arg arg) {
  switch (arg.kind()) {
    case ArgKind::Register:
      return cat("%", arg.bits());
    case ArgKind::LastUse:
      return cat("%", arg.bits(), "!");
    case ArgKind::Borrowed:
      return cat("%", arg.bits(), "&");
    case ArgKind::Immediate:
      return cat(arg.value());
    case ArgKind::Constant:
      return cat("#", arg.bits());
    case ArgKind::Function:
      return cat("@", arg.bits());
    case ArgKind::Packed:
      return cat("$", arg.bits());
    case ArgKind::Label:
      return cat("L", arg.bits());
    case ArgKind::Dtype:
      return to_text(arg.as_dtype());
    case ArgKind::Device:
      return tenon::to_text(arg.as_device());
    case ArgKind::None:
      return "_";
  }
  return cat("?", hex(arg.word));
}

std::string dim_text(Arg code, Arg value) {
  switch (static_cast<DimMatch>(code.value())) {
    case DimMatch::Ignore:
      return "*";
    case DimMatch::EqualsImmediate:
    case DimMatch::EqualsRegister:
      return cat("=", to_text(value));
    case DimMatch::Store:
      return cat("->", to_text(value));
  }
  return cat("?", code.value());
}

}  // namespace tenon::vm
