// What calls of closures return, as far as the code around them tells. Private to this folder.
//
// A call of a closure doesn't state its type. The closure's origin may: a parameter, whose type
// states its result, or a function of the program. Or the result goes on as an operand that is a
// number, as an argument of a function whose signature has a number there, or as the function's own
// result. It is expected to be that number. Where it isn't, compiled code leaves, as it does where
// a signature is broken.
#pragma once

#include <cstdint>
#include <map>

#include "codegen/llvm/bytecode_flow.h"
#include "codegen/llvm/register_kind.h"

namespace tenon::codegen {

// By the number of the instruction, for results that are expected to be numbers.
std::map<uint32_t, RegisterKind> closure_results(const BytecodeFlow& flow, const vm::Unit& unit);

}  // namespace tenon::codegen
