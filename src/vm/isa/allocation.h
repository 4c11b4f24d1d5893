// What an instruction allocates, for tools that describe code.
#pragma once

#include <cstdint>
#include <optional>

#include "vm/isa/instruction.h"

namespace tenon::vm {

// The size of the tensor that an alloc_tensor, new_tensor or alloc_result makes; nullopt if it is
// only known at run time, and for other instructions.
std::optional<int64_t> known_tensor_bytes(const Instruction& instruction);

}  // namespace tenon::vm
