// Opcodes as data: the rows of opcodes.def, with parsed operand lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "vm/isa/short_text.h"

namespace tenon::vm {

enum class Opcode : uint16_t {
  None = 0,  // not an instruction
#define TENON_OPCODE(identifier, mnemonic, number, ...) identifier = number,
#include "vm/isa/opcodes.def"
};
// Every opcode's number is below this.
inline constexpr size_t kOpcodeNumbers = 256;

enum OpcodeFlags : uint8_t {
  kEnds = 1,         // control never reaches the next instruction
  kFresh = 2,        // the result is a tensor whose elements nothing has written yet
  kInterleaves = 4,  // it may write a register before it has read all operands
  kWritesIntegers = 8,
  kWritesBoolean = 16,
};

// How the pre-decoder lays out an instruction's operands (vm/interp/op.h), and what executes it:
// the dispatch loop itself or a function of vm/interp/slow_path.h.
enum class OpClass : uint8_t {
  // A function of the slow path:
  Plain,     // takes values, a dtype and a device; at most one result
  Function,  // makes a value of a function or packed function
  Unpack,    // has a list of results
  Match,     // compares dimensions
  // The dispatch loop:
  Binary,      // a function of vm/interp/arithmetic.h on two integers; or the row's expression on
               // floats
  Comparison,  // the row's condition on two integers
  Call,        // of a function, packed function or closure, in this frame or a new one
  Return,
  Goto,
  If,
  IfEq,
  Switch,
  Move,  // copies or moves any value
  LoadInt,
  Kill,
  Concurrent,  // runs the calls behind it
};

// The kinds of operand: the rows of operand_kinds.def.
enum class OperandKind : uint8_t {
#define TENON_OPERAND_KIND(identifier, ...) identifier,
#include "vm/isa/operand_kinds.def"
};
std::string_view name_of(OperandKind kind);  // "def", "use", ...
std::string_view form_of(OperandKind kind);  // "a register such as %1"

// What an instruction does with an operand, or with one word of it.
enum class OperandRole : uint8_t {
  Writes,       // writes the register; `_` drops the result
  ReadsValue,   // reads a value: of a register, possibly at its last use, or written in the code
  ReadsNumber,  // reads an integer or float: of a register, which keeps it, or written in the code
  Literal,      // a value that is always written in the code
  Dtype,
  Device,
  Callee,  // a function that it calls or makes a value of
  Target,  // an instruction to jump to
  Pair,    // the first of two words, which says how the second is used
  Unused,
};
constexpr OperandRole role_of(OperandKind kind) {
  switch (kind) {
#define TENON_OPERAND_KIND(identifier, name, accepts, role, ...) \
  case OperandKind::identifier:                                  \
    return OperandRole::role;
#include "vm/isa/operand_kinds.def"
  }
  return {};
}
constexpr uint32_t words_of(OperandKind kind) {
  return role_of(kind) == OperandRole::Pair ? 2 : 1;
}

struct OperandSpec {
  uint8_t name_index = 0;  // many operands share a name
  OperandKind kind = OperandKind::Def;
  bool list = false;          // of any length; only the last operand
  bool rank_bounded = false;  // a list of at most kMaxRank

  std::string_view name() const;
};

inline constexpr int kMaxOperands = 5;

inline constexpr size_t kLongestMnemonic = longest({
#define TENON_OPCODE(identifier, mnemonic, ...) #mnemonic,
#include "vm/isa/opcodes.def"
});

struct OpcodeInfo {
  Opcode opcode{};
  ShortText<kLongestMnemonic> mnemonic;
  OpClass op_class{};
  uint8_t flags = 0;
  uint8_t since = 0;
  uint8_t operand_count = 0;
  uint8_t fixed_words = 0;  // words of the operands before the list
  OperandSpec operands[kMaxOperands];

  constexpr std::span<const OperandSpec> specs() const { return {operands, operand_count}; }
  constexpr bool has_list() const { return operand_count && operands[operand_count - 1].list; }
  // Whether the first operand is written: assembly puts it before "=".
  constexpr bool has_result() const {
    return operand_count && operands[0].kind == OperandKind::Def && !operands[0].list;
  }
  constexpr bool has_operand(OperandKind kind) const {
    for (const OperandSpec& spec : specs()) {
      if (spec.kind == kind) return true;
    }
    return false;
  }
  constexpr bool ends() const { return flags & kEnds; }
  constexpr bool makes_fresh() const { return flags & kFresh; }
  constexpr bool interleaves() const { return flags & kInterleaves; }
  constexpr bool writes_integers() const { return flags & kWritesIntegers; }
  constexpr bool writes_boolean() const { return flags & kWritesBoolean; }
  // Whether instruments see it, before and after.
  constexpr bool calls() const { return op_class == OpClass::Call; }
  constexpr bool jumps() const {
    return has_operand(OperandKind::Label) || has_operand(OperandKind::Case);
  }
  // The spec of operand word `word_index`; for Dim and Case, `part` is which of the operand's two
  // words that is.
  const OperandSpec& spec_at(uint32_t word_index, uint32_t* part = nullptr) const;
};

// The opcode's class in the table.
constexpr OpClass class_of(Opcode opcode) {
  switch (opcode) {
#define TENON_OPCODE(identifier, mnemonic, number, op_class, ...) \
  case Opcode::identifier:                                        \
    return OpClass::op_class;
#include "vm/isa/opcodes.def"
    case Opcode::None:
      break;
  }
  return {};
}

// All rows, in the order of opcodes.def.
std::span<const OpcodeInfo> all_opcodes();
// Null if no instruction has that number or mnemonic.
const OpcodeInfo* find_opcode(uint32_t number);
const OpcodeInfo* find_opcode(std::string_view mnemonic);
const OpcodeInfo& info_of(Opcode opcode);
// The instruction's semantics in register-transfer style: for documents, not for the runtime.
std::string_view semantics_of(Opcode opcode);

}  // namespace tenon::vm
