// The sum of the products of bytes, as one instruction where the CPU has it. Private to this
// folder: it exposes LLVM types.
#pragma once

#include "codegen/llvm/target.h"
#include "llvm/IR/IRBuilder.h"

namespace tenon::codegen {

// sum + the sum of the products of the unsigned bytes of `a` and the signed bytes of `b`, lane by
// lane; wraps. All have the same type, an integer or a vector of integers.
llvm::Value* byte_dot(llvm::IRBuilderBase& b, const Target& target, llvm::Value* sum,
                      llvm::Value* bytes, llvm::Value* signed_bytes);

}  // namespace tenon::codegen
