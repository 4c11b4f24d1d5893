// Elements in registers and in memory: booleans are i1 and a byte, integers narrower than a byte
// their own type and a byte, floats narrower than f32 are f32 and their bits; all others are the
// same in both. Private to this folder: it exposes LLVM types.
#pragma once

#include <string_view>

#include "codegen/llvm/lower.h"

namespace tenon::codegen {

// Throws an Unsupported error: "no code for WHAT of T".
[[noreturn]] void no_code(std::string_view what, DataType t);

// Scalar types; both throw for an unsupported dtype.
llvm::Type* register_type(const ModuleWriter& m, DataType t);
llvm::Type* memory_type(const ModuleWriter& m, DataType t);

// For scalars and vectors alike.
llvm::Value* from_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t);
llvm::Value* to_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t);
// A register's value, rounded to `t`: only matters for floats narrower than
// f32, which are computed in it.
llvm::Value* rounded(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t);

}  // namespace tenon::codegen
