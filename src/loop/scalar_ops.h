// The operations of scalar expressions and the facts about each, from scalar_ops.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "object/dtype.h"

namespace tenon::loop {

// loop/scalar.h and docs/semantics.md define what an operation computes: integers wrap; a shift
// past the width gives 0; kMin and kMax propagate NaN. Integer division and remainder by zero stop
// the kernel with an error.
enum class UnaryOp : uint8_t {
#define TENON_UNARY(op, word, operands, result, cost) op,
#define TENON_BINARY(op, word, operands, result, fails, integer_cost, float_cost)
#include "loop/scalar_ops.def"
#undef TENON_UNARY
#undef TENON_BINARY
};

enum class BinaryOp : uint8_t {
#define TENON_UNARY(op, word, operands, result, cost)
#define TENON_BINARY(op, word, operands, result, fails, integer_cost, float_cost) op,
#include "loop/scalar_ops.def"
#undef TENON_UNARY
#undef TENON_BINARY
};

// Of a word: an i32 as an operand of BinaryOp::kByteDot.
inline constexpr int64_t kBytesPerWord = 4;

enum class ScalarCost : uint8_t {
  kFree,            // no instruction
  kSimple,          // one or two instructions
  kDivision,        // several times that: divisions, square roots
  kTranscendental,  // a polynomial or a loop
};

// A row of the table.
struct ScalarOpInfo {
  std::string_view word;
  uint8_t operands;  // classes of types, see takes()
  bool tests;        // the result is a boolean, otherwise of the operands' type
  bool fails;        // for an integer divisor of 0
  ScalarCost integer_cost, float_cost;
};

// The table's rows; a row's index is the enumerator's value.
std::span<const ScalarOpInfo> unary_ops();
std::span<const ScalarOpInfo> binary_ops();
inline const ScalarOpInfo& info(UnaryOp op) {
  return unary_ops()[static_cast<size_t>(op)];
}
inline const ScalarOpInfo& info(BinaryOp op) {
  return binary_ops()[static_cast<size_t>(op)];
}

// Whether the operation is defined on operands of this type.
bool takes(const ScalarOpInfo& op, DataType dtype);

// The cost of one evaluation on operands of this type.
inline ScalarCost cost_of(const ScalarOpInfo& op, DataType dtype) {
  return dtype.is_float() ? op.float_cost : op.integer_cost;
}

// Whether an evaluation on operands of this type can stop the kernel.
inline bool can_fail(BinaryOp op, DataType dtype) {
  return info(op).fails && !dtype.is_float();
}

}  // namespace tenon::loop
