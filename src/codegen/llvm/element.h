// Elements in registers and in memory: booleans are i1 and a byte, 16-bit floats f32 and their
// bits; all others are the same in both. Private to this folder: it shows LLVM types.
#pragma once

#include <string_view>

#include "codegen/llvm/lower.h"

namespace tenon::codegen {

// Throws Error (Unsupported): "no code for WHAT of T".
[[noreturn]] void no_code(std::string_view what, DataType t);

// Scalar types; both throw for a dtype without code.
llvm::Type* register_type(const ModuleWriter& m, DataType t);
llvm::Type* memory_type(const ModuleWriter& m, DataType t);

// Of scalars and vectors alike.
llvm::Value* from_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t);
llvm::Value* to_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t);
// A value in a register rounded to one that `t` has: of 16-bit floats, which are computed in f32.
llvm::Value* rounded(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t);

}  // namespace tenon::codegen
