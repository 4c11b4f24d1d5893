// The control flow of a bytecode function, for its translation to machine code: its instructions
// and blocks, the registers that are live where a block begins, and the pieces it is divided into.
//
// A call of bytecode ends a block, and another piece goes on after it. A block that is reached from
// two pieces begins a piece of its own, so that each block is translated once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::codegen {

// A set of registers.
class RegisterSet {
 public:
  explicit RegisterSet(size_t registers = 0) : words_((registers + 63) / 64) {}
  bool has(uint32_t r) const { return words_[r / 64] >> (r % 64) & 1; }
  void add(uint32_t r) { words_[r / 64] |= uint64_t{1} << (r % 64); }
  void remove(uint32_t r) { words_[r / 64] &= ~(uint64_t{1} << (r % 64)); }
  // Returns whether that added any.
  bool add(const RegisterSet& others) {
    uint64_t added = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      added |= others.words_[i] & ~words_[i];
      words_[i] |= others.words_[i];
    }
    return added != 0;
  }
  bool operator==(const RegisterSet&) const = default;

 private:
  std::vector<uint64_t> words_;
};

struct FlowBlock {
  uint32_t first = 0, end = 0;      // instructions, by number
  std::vector<uint32_t> next;       // blocks that it may go on to, in the function
  std::optional<uint32_t> resumes;  // the block after the call that ends it
  bool begins_piece = false;
  RegisterSet live;  // where it begins
};

struct BytecodeFlow {
  explicit BytecodeFlow(const vm::FunctionUnit& function);

  const vm::FunctionUnit& function;
  std::vector<vm::Instruction> instructions;
  std::vector<FlowBlock> blocks;  // 0 is entered first, from the function's own piece

  // The block that begins at the instruction of a label.
  uint32_t block_at(vm::Arg label) const { return block_of_word_[label.index()]; }
  // The first block that begins with that instruction or behind it.
  uint32_t block_beginning(uint32_t instruction) const {
    return block_of_instruction_[instruction];
  }
  // The live registers before each instruction of a block.
  std::vector<RegisterSet> live_before(const FlowBlock& block) const;

 private:
  void find_blocks();
  void find_live_registers();
  void find_pieces();

  std::vector<uint32_t> block_of_word_, block_of_instruction_;
};

// Whether an instruction enters bytecode and comes back.
bool is_call(const vm::Instruction& in);
// Whether the program is worth compiling: it has a loop, a call or a match, and isn't so large that
// that takes seconds.
bool is_worth_compiling(const vm::Unit& unit);
// Calls `f` with each operand that is a register which the instruction reads, and its role.
template <class F>
void for_each_read(const vm::Instruction& in, F&& f) {
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    const vm::OperandRole role = vm::role_of(in, i);
    const bool reads = role == vm::OperandRole::ReadsValue || role == vm::OperandRole::ReadsNumber;
    if (reads && in.arg(i).is_register()) f(in.arg(i), role);
  }
}
// Calls `f` with each register that it writes.
template <class F>
void for_each_write(const vm::Instruction& in, F&& f) {
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    if (vm::role_of(in, i) == vm::OperandRole::Writes && in.arg(i).is_register()) {
      f(in.arg(i).index());
    }
  }
}

}  // namespace tenon::codegen
