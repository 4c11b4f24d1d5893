// The bytecode of a function as both lowerings read it.
#pragma once

#include <cstdint>
#include <vector>

#include "code.h"
#include "vm/isa/instruction.h"

namespace tenon::bench {

// An instruction. A take_fields is several steps, a get_field each, and a reuse_adt an alloc_adt:
// neither machine reuses cells.
struct Step {
  std::vector<vm::Word> code;  // of an instruction that isn't the function's own
  vm::Instruction instruction;
  // The values that it reads. If several are one register, only the last can be its last use.
  std::vector<vm::Arg> reads;
  int32_t writes = -1;     // a register, except those of a kill
  int32_t target = -1;     // a step
  bool leads = false;      // starts a basic block
  std::vector<bool> live;  // the registers that are read after it
};
std::vector<Step> read_steps(const vm::FunctionUnit& function);

// The opcode that gives the same with exchanged operands; None if there is none.
vm::Opcode exchanged(vm::Opcode opcode);
bool is_float_operation(vm::Opcode opcode);
// Of a get_field, whose index must be written in the code.
uint64_t field_index(const vm::Instruction& instruction);
// Throws unless a to_float makes an f64.
void check_is_f64(const vm::Instruction& instruction);
[[noreturn]] void fail_unsupported(const vm::Instruction& instruction);

// Appends a function's code.
class CodeWriter {
 public:
  CodeWriter(Code& code, uint32_t function);
  void start_step();
  template <class Op>
  void op(Op op) {
    out_.push_back(static_cast<uint8_t>(op));
  }
  void number(uint64_t value);
  void number(vm::Arg arg) { number(arg.index()); }
  void integer(int64_t value) { number(from_signed(value)); }
  void jump(int32_t step);
  void finish();  // resolves the jumps

 private:
  struct Jump {
    size_t at;
    int32_t step;
  };
  std::vector<uint8_t>& out_;
  CodeFunction& function_;
  std::vector<Jump> jumps_;
};

}  // namespace tenon::bench
