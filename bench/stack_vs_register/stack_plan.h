// Which values stay on the operand stack.
//
// The code keeps the order of the bytecode's instructions. A value that is made and used within a
// basic block stays on the stack from its definition to its first use where the stack's order
// allows: the values that are on the stack at a time are used in the reverse order, and the
// operands of an instruction are there in theirs. An operand that is pushed from a local or a
// constant below one that stays is pushed before the instructions that compute the latter, as a
// compiler of expression trees would do. All other values are in locals.
#pragma once

#include <vector>

#include "flow.h"

namespace tenon::bench {

struct StackStep {
  // An operand that is pushed: the step that uses it, and the index among its reads.
  struct Push {
    size_t step;
    size_t operand;
  };
  vm::Opcode opcode{};
  std::vector<vm::Arg> reads;    // as the step's, or exchanged with the opcode
  std::vector<int32_t> kept_by;  // for each, the step whose value stays on the stack for it, or -1
  std::vector<Push> pushes;      // before the instruction
  bool stays = false;            // the result stays on the stack
  bool in_local = false;         // the result is read from a local
};

std::vector<StackStep> plan_stack(const std::vector<Step>& steps, size_t registers);

}  // namespace tenon::bench
