// Negated and exchanged integer comparisons, for branches and loops; from opcodes.def.
#pragma once

#include <optional>

#include "vm/isa/opcode.h"

namespace tenon::codegen {

// The comparison that holds exactly when `opcode` doesn't; nullopt if there is none or `opcode`
// isn't a comparison.
std::optional<vm::Opcode> negate(vm::Opcode opcode);

// The comparison of b and a that holds exactly when `opcode` of a and b does.
std::optional<vm::Opcode> exchange(vm::Opcode opcode);

}  // namespace tenon::codegen
