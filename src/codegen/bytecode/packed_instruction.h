// Packed functions of the machine that are single instructions in bytecode.
#pragma once

#include <cstddef>

#include "graph/ir/expr.h"
#include "vm/isa/opcode.h"

namespace tenon::codegen {

// The instruction whose operands, after the result, are the call's arguments. Opcode::None for any
// other call.
vm::Opcode instruction_of(const graph::Call& call);

// Whether such an instruction neither keeps nor changes the argument, so that a register may lend
// it; false for None.
bool borrows_argument(vm::Opcode opcode, size_t index);

}  // namespace tenon::codegen
