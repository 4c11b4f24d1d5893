// The binary operations. On 64-bit integers: a function op_MNEMONIC for each TENON_FAST_BINARY row
// of opcodes.def, here, so that the dispatch loop can inline it, and for each TENON_BINARY row, in
// arithmetic.cc. Each stores the result and returns true, or returns false for an overflow that is
// an error; it throws other errors. On floats: what the expressions of opcodes.def need.
#pragma once

#include <cstdint>
#include <limits>

#include "vm/isa/opcode.h"

namespace tenon::vm {

// The type of a binary operation's result.
enum class BinaryResult : uint8_t {
  Integer,
  Logical,  // a boolean if both operands are, else an integer
  Boolean,
  OfFloats,  // computed by slow_path::float_result; the operation has no function
};

struct BinaryOperation {
  Opcode opcode;
  BinaryResult result;
  bool (*compute)(int64_t a, int64_t b, int64_t* r);
};

// For an opcode of class Binary or Comparison.
const BinaryOperation& binary_operation(Opcode opcode);

// The result of an operation that makes NaNs. The sign and the payload of those depend on the
// processor and on how a compiler orders operands and folds constants, so that there is one NaN
// only: bytecode and compiled code give the same bits.
inline double one_nan(double result) {
  // So rare that GCC branches: a selection would make the result wait for the comparison.
  const bool is_nan = __builtin_expect_with_probability(result != result, false, 0.999);
  return is_nan ? std::numeric_limits<double>::quiet_NaN() : result;
}

namespace arithmetic {

// Two's complement; C++ leaves signed overflow undefined.
constexpr int64_t wrapped(uint64_t v) {
  return static_cast<int64_t>(v);
}
constexpr uint64_t bits(int64_t v) {
  return static_cast<uint64_t>(v);
}

inline bool op_add(int64_t a, int64_t b, int64_t* r) {
  *r = wrapped(bits(a) + bits(b));
  return true;
}
inline bool op_sub(int64_t a, int64_t b, int64_t* r) {
  *r = wrapped(bits(a) - bits(b));
  return true;
}
inline bool op_mul(int64_t a, int64_t b, int64_t* r) {
  *r = wrapped(bits(a) * bits(b));
  return true;
}
inline bool op_add_checked(int64_t a, int64_t b, int64_t* r) {
  return !__builtin_add_overflow(a, b, r);
}
inline bool op_sub_checked(int64_t a, int64_t b, int64_t* r) {
  return !__builtin_sub_overflow(a, b, r);
}
inline bool op_mul_checked(int64_t a, int64_t b, int64_t* r) {
  return !__builtin_mul_overflow(a, b, r);
}
inline bool op_min(int64_t a, int64_t b, int64_t* r) {
  *r = a < b ? a : b;
  return true;
}
inline bool op_max(int64_t a, int64_t b, int64_t* r) {
  *r = a > b ? a : b;
  return true;
}

}  // namespace arithmetic
}  // namespace tenon::vm
