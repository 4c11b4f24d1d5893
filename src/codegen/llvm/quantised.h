// Quantised numbers, as quantize_linear and dequantize_linear compute them: a float is rounded,
// moved by a zero point and saturated, and back. Clamped before it is rounded, which gives the
// same, it needs neither a conversion that saturates nor, on the way back, an integer. Private to
// this folder: it exposes LLVM types.
#pragma once

#include <optional>

#include "llvm/IR/IRBuilder.h"
#include "loop/expr.h"

namespace tenon::codegen {

// cast(dtype, round(value) + zero), of an f32 to u8 or i8; `zero` is a number of that dtype.
struct Quantised {
  const loop::Expr* value = nullptr;
  const loop::Expr* zero = nullptr;  // f32
  DataType dtype;
};
std::optional<Quantised> quantised(const loop::Expr& e);

// cast(f32, cast(i32, quantised) - zero), with the same zero point.
std::optional<Quantised> dequantised(const loop::Expr& e);

// `value` and `zero` are f32, or vectors of it. The first gives integers of 8 bits.
llvm::Value* quantise(llvm::IRBuilderBase& b, DataType dtype, llvm::Value* value,
                      llvm::Value* zero);
llvm::Value* quantise_and_back(llvm::IRBuilderBase& b, DataType dtype, llvm::Value* value,
                               llvm::Value* zero);

}  // namespace tenon::codegen
