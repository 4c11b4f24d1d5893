// The operators of scalar expressions on evaluated operands: arithmetic, comparisons, conversions
// and literals. docs/semantics.md defines what each computes. Private to this folder: it exposes
// LLVM types.
#pragma once

#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"

namespace tenon::codegen {

class OperatorWriter {
 public:
  OperatorWriter(FunctionWriter& f, Facts& facts) : f_(f), b_(f.b), facts_(facts) {}

  Value literal(const loop::Literal& e);
  Value unary(const loop::Unary& e, Value a);
  Value binary(const loop::Binary& e, Value a, Value b);
  // sum + byte_dot(a, b)
  Value byte_dot_sum(Value sum, Value a, Value b);
  // For two scalars, or two vectors, of integers or booleans.
  llvm::Value* integer_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* convert(llvm::Value* v, DataType from, DataType to);
  llvm::Value* reinterpret(llvm::Value* v, DataType from, DataType to);  // the same bits

 private:
  llvm::Value* integer_division(const loop::Binary& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* float_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b);
  Num saturated(Num x, DataType to);  // a float as an integer of 8 or 16 bits; NaN is 0
  Num saturated_lanes(Num x, DataType to);
  llvm::Value* rounded(llvm::Value* v, DataType t);
  // Applies a function on scalars to the operands (scalars or vectors), lane by lane.
  llvm::Value* per_lane(llvm::ArrayRef<llvm::Value*> operands,
                        const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& f);

  FunctionWriter& f_;
  Builder& b_;
  Facts& facts_;
};

}  // namespace tenon::codegen
