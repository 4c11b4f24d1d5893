// The hash of a program's bytecode, by which compiled code (code_abi.h) knows what it was made
// from.
#pragma once

#include <cstdint>
#include <span>

#include "vm/isa/unit.h"

namespace tenon::vm {

// Of the code of all functions, their registers and parameters.
uint64_t code_hash(std::span<const FunctionUnit> functions);

}  // namespace tenon::vm
