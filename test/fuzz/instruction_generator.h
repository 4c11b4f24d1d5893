// Programs of the machine made from the table of instructions (vm/isa/opcodes.def): a row that is
// added there is generated without a change here.
//
// An instruction's operands are chosen by their kinds, so that the verifier accepts it. Kinds say
// nothing about the types of values, so a function grows by execution: an instruction is appended
// if the function still returns after it, and the values found in the registers are what the next
// one may choose from. A few instructions that fail are kept too, as a function's last ones.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::fuzz {

// Where choices come from: bytes while there are some, as a fuzzer gives them, then random numbers.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes), random_(bytes.size()) {}

  // 0 to n - 1.
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

// An instruction of a function that grows. A label is the index of a Line; one past the last line
// is the end, where the function returns what is in its registers.
struct Line {
  vm::Opcode opcode;
  std::vector<vm::Arg> operands;
};

// What an instruction's operands may name, and how the generator prefers to choose among it.
struct Scope {
  uint32_t registers = 0;
  uint32_t lines = 0;          // labels go to 0..lines
  std::vector<uint32_t> text;  // constants that are strings
  // Registers whose value is not None; others are chosen now and then.
  std::vector<uint32_t> full;
};

// An instruction that the verifier accepts within `scope` of `unit`. Of an opcode whose operands
// name what the unit lacks, as a packed function, nothing.
std::optional<Line> make_line(Choices& choices, const vm::OpcodeInfo& info, const Scope& scope,
                              const vm::Unit& unit);

// The code of lines, labels as word offsets; the end is behind them.
std::vector<vm::Word> encode(std::span<const Line> lines);

struct GeneratedUnit {
  vm::Unit unit;
  // How often instructions of each opcode are part of a function that returns.
  std::map<vm::Opcode, int> executed;
};

// A unit of a few functions, each of which the verifier accepts and which ran, under limits, while
// it was made. The registry's functions that files may link are called by name. Throws an Internal
// error that says what the machine got wrong: a finding.
GeneratedUnit make_unit(Choices& choices);

}  // namespace tenon::fuzz
