// Instructions that need more than a few machine instructions: the function op_MNEMONIC for each
// opcode of class Plain, Function, Unpack or Match, and `binary` for the general form of binary
// operations. Each reads its operands from the frame at `base`, writes its result, releases last
// uses, and throws errors. None enters other code of the program.
#pragma once

#include "vm/interp/machine.h"
#include "vm/interp/op.h"

namespace tenon::vm::slow_path {

// Declared for all rows, defined only for those of the classes above.
#define TENON_OPCODE(identifier, mnemonic, ...) \
  void op_##mnemonic(Machine& m, const Op& op, AnyView* base);
#include "vm/isa/opcodes.def"

void binary(Machine& m, const Op& op, AnyView* base);
// The result of an operation on floats; `right` is `left` for one that has a single operand.
Any float_result(Opcode opcode, const AnyView& left, const AnyView& right);

}  // namespace tenon::vm::slow_path
