// Operand words and instructions as stored in a file; opcodes.def draws the layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "object/dtype.h"
#include "tenon/dlpack.h"
#include "vm/isa/opcode.h"
#include "vm/isa/operand_index.h"
#include "vm/isa/rule.h"

namespace tenon::vm {

using Word = uint64_t;

// The kinds of operand word: the rows of arg_kinds.def.
enum class ArgKind : uint8_t {
#define TENON_ARG_KIND(identifier, number, ...) identifier = number,
#include "vm/isa/arg_kinds.def"
};
// Every kind's number is below this.
inline constexpr uint8_t kArgKinds = 0
#define TENON_ARG_KIND(...) +1
#include "vm/isa/arg_kinds.def"
    ;

inline constexpr int64_t kMinImmediate = -(int64_t{1} << 55);
inline constexpr int64_t kMaxImmediate = (int64_t{1} << 55) - 1;
constexpr bool fits_immediate(int64_t v) {
  return v >= kMinImmediate && v <= kMaxImmediate;
}

// How a dimension is matched: the first word of a `dim` operand.
enum class DimMatch : uint8_t {
  Ignore = 0,
  EqualsImmediate = 1,
  EqualsRegister = 2,
  Store = 3,
};

// One operand word.
struct Arg {
  Word word = 0;

  Arg() = default;
  explicit constexpr Arg(Word w) : word(w) {}
  constexpr Arg(ArgKind kind, int64_t value)
      : word(Word{static_cast<uint8_t>(kind)} << 56 | (static_cast<Word>(value) & kValueMask)) {}

  static constexpr Arg reg(uint32_t index) { return {ArgKind::Register, index}; }
  static constexpr Arg last(uint32_t index) { return {ArgKind::LastUse, index}; }
  static constexpr Arg borrowed(uint32_t index) { return {ArgKind::Borrowed, index}; }
  static Arg imm(int64_t value);  // an Internal error if it doesn't fit 56 bits
  static constexpr Arg constant(uint32_t index) { return {ArgKind::Constant, index}; }
  static constexpr Arg func(uint32_t index) { return {ArgKind::Function, index}; }
  static constexpr Arg packed(uint32_t index) { return {ArgKind::Packed, index}; }
  static constexpr Arg label(uint32_t word_offset) { return {ArgKind::Label, word_offset}; }
  static constexpr Arg dtype(DataType t) { return {ArgKind::Dtype, int64_t{t.word()}}; }
  static constexpr Arg device(DLDevice d) {
    return {ArgKind::Device,
            static_cast<int64_t>(uint64_t{static_cast<uint32_t>(d.device_id)} << 32 |
                                 static_cast<uint32_t>(d.device_type))};
  }
  static constexpr Arg none() { return {ArgKind::None, 0}; }

  // May not be a valid ArgKind if the word comes from a file.
  constexpr ArgKind kind() const { return static_cast<ArgKind>(word >> 56); }
  constexpr int64_t value() const { return static_cast<int64_t>(word << 8) >> 8; }
  constexpr uint64_t bits() const { return word & kValueMask; }
  constexpr uint32_t index() const { return static_cast<uint32_t>(word); }
  constexpr DataType as_dtype() const { return DataType::from_word(index()); }
  constexpr DLDevice as_device() const {
    return {static_cast<DLDeviceType>(static_cast<uint32_t>(word)),
            static_cast<int32_t>((word >> 32) & 0xffffff)};
  }
  constexpr bool is(ArgKind k) const { return kind() == k; }
  constexpr bool is_register() const {
    return is(ArgKind::Register) || is(ArgKind::LastUse) || is(ArgKind::Borrowed);
  }
  constexpr bool is_none() const { return is(ArgKind::None); }
  constexpr bool operator==(const Arg&) const = default;

 private:
  static constexpr Word kValueMask = (Word{1} << 56) - 1;
};
static_assert(sizeof(Arg) == sizeof(Word));

constexpr Word encode_header(Opcode opcode, uint32_t operand_words) {
  return Word{operand_words} << 32 | static_cast<uint16_t>(opcode);
}

// A decoded instruction; it borrows the code.
struct Instruction {
  const OpcodeInfo* info = nullptr;
  std::span<const Word> operands;

  Opcode opcode() const { return info->opcode; }
  Arg arg(uint32_t i) const { return Arg(operands[i]); }
  uint32_t words() const { return 1 + static_cast<uint32_t>(operands.size()); }
  // The operand words of the list operand.
  std::span<const Word> list() const { return operands.subspan(info->fixed_words); }
};

// Decodes the instruction at `offset`. Returns false if the offset is out of range, the opcode is
// unknown, reserved bits are set, or the operands don't fit in the code; `broken` is then the rule
// that this violates. Doesn't check operand counts and kinds.
bool decode(std::span<const Word> code, uint32_t offset, Instruction* out, Rule* broken = nullptr);

// What an instruction does with word `part` of an operand, whose kinds are right. `first` is the
// operand's first word, which decides what a dim does with the second.
OperandRole role_of(OperandKind kind, uint32_t part, Arg first);
// The same for operand word `word` of an instruction.
OperandRole role_of(const Instruction& instruction, uint32_t word);

// Whether what the instruction writes borrows (opcodes.def).
inline bool writes_borrowed(const Instruction& instruction) {
  constexpr uint32_t kSource = operand(Opcode::Move, "src");
  return instruction.opcode() == Opcode::BorrowField ||
         (instruction.opcode() == Opcode::Move && instruction.arg(kSource).is(ArgKind::Borrowed));
}

// Whether each argument of a call is already in the register of its parameter.
bool passes_in_place(const Instruction& call);

// An operand word as text: "%3", "%3!", "%3&", "-7", "#2", "@1", "$1", "L40", "f32", "cpu:0", "_".
// Functions, packed functions and labels are shown by number; the disassembler inserts names.
std::string to_text(Arg arg);
// A dim operand: "*", "=3", "=%2", "->%2".
std::string dim_text(Arg code, Arg value);

}  // namespace tenon::vm
