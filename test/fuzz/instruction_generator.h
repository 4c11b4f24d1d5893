// Generates bytecode programs from the table of instructions (vm/isa/opcodes.def). New rows need no
// change here.
//
// Operands are chosen by their kinds, so that the verifier accepts the instruction. Kinds don't
// determine the types of values, so a function grows by execution: an instruction is appended if
// the function still returns after it, and later instructions choose among the values found in the
// registers. A few failing instructions are kept too, as the last ones of functions. Some
// instructions are appended together, in the patterns that the pre-decoder has forms for
// (vm/interp/decode.cc), since chance rarely makes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::fuzz {

// A source of choices: a fuzzer's bytes while there are any, then random numbers.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes), random_(bytes.size()) {}

  // A number from 0 to n - 1.
  uint64_t below(uint64_t n);
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <class Range>
  const auto& of(const Range& values) {
    return values[below(std::size(values))];
  }

 private:
  std::span<const uint8_t> bytes_;
  std::mt19937_64 random_;
};

// An instruction of a growing function. A label is the index of a Line; one past the last line is
// the end, where the function returns the contents of its registers.
struct Line {
  vm::Opcode opcode;
  std::vector<vm::Arg> operands;
};

// What an instruction's operands may name, and which of them the generator prefers.
struct Scope {
  uint32_t registers = 0;
  uint32_t lines = 0;          // labels go to 0..lines
  std::vector<uint32_t> text;  // constants that are strings
  // Registers whose value is not None; others are chosen rarely.
  std::vector<uint32_t> full;
  std::vector<uint32_t> borrowing;  // registers that borrow; at least one register doesn't
  bool borrows(uint32_t reg) const {
    return std::find(borrowing.begin(), borrowing.end(), reg) != borrowing.end();
  }
};

// An instruction that the verifier accepts within `scope` of `unit`; nullopt if its operands name
// something that the unit doesn't have, such as a packed function.
std::optional<Line> make_line(Choices& choices, const vm::OpcodeInfo& info, const Scope& scope,
                              const vm::Unit& unit);

// Encodes lines, with labels as word offsets; the end comes after them.
std::vector<vm::Word> encode(std::span<const Line> lines);

struct GeneratedUnit {
  vm::Unit unit;
  // Programs that were run to make this one: it, with an instruction or a pattern more at a time.
  int tried = 0;
  int kept = 0;  // those that returned, from which it was continued
  // How many instructions of each opcode are in functions that return.
  std::map<vm::Opcode, int> executed;
  // For each function, whether each of its instructions ran when the function was called as it was
  // generated. Empty unless that was asked for.
  std::vector<std::vector<bool>> reached;
};

enum class Reach : uint8_t { Ignored, Found };

// A unit of a few functions that the verifier accepts and that ran, under limits, while they were
// generated. They call the registry's functions that files may link. Throws an Internal error if
// the machine misbehaves, which is a finding. Finding what is reached takes a run for each
// instruction.
GeneratedUnit make_unit(Choices& choices, Reach reach = Reach::Ignored);

}  // namespace tenon::fuzz
