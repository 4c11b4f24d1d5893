// Comparisons of integers turned round, as branches and loops want them; from opcodes.def.
#pragma once

#include <optional>

#include "vm/isa/opcode.h"

namespace tenon::codegen {

// The comparison that holds exactly when `opcode` doesn't; none where there is none, and for other
// instructions.
std::optional<vm::Opcode> negate(vm::Opcode opcode);

// The comparison of b and a that holds exactly when `opcode` of a and b does.
std::optional<vm::Opcode> exchange(vm::Opcode opcode);

}  // namespace tenon::codegen
