// Writes virtual code with assigned registers as a function's code words.
#pragma once

#include "codegen/bytecode/assign_registers.h"
#include "codegen/bytecode/constant_pool.h"

namespace tenon::codegen {

// Sets out's code, spans and register_count. Loops are rotated: the condition comes after the body,
// so that an iteration takes one jump. `self` is the function's index in the unit, for self calls.
void write_code(const VirtualCode& code, const Liveness& liveness, const Assignment& assignment,
                uint32_t self, vm::FunctionUnit* out);

}  // namespace tenon::codegen
