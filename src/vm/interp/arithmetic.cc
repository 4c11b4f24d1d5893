#include "vm/interp/arithmetic.h"

#include <array>
#include <iterator>

#include "support/failures.h"

namespace tenon::vm {
namespace arithmetic {
namespace {

void check_divisor(int64_t b) {
  if (b == 0) throw division_by_zero();
}

// Division by -1 is separate: -2^63 / -1 wraps, where the processor's division would trap.
bool op_floordiv(int64_t a, int64_t b, int64_t* r) {
  check_divisor(b);
  if (b == -1) return op_sub(0, a, r);
  const bool rounds_up = a % b != 0 && (a < 0) != (b < 0);
  *r = a / b - (rounds_up ? 1 : 0);
  return true;
}

bool op_floormod(int64_t a, int64_t b, int64_t* r) {
  check_divisor(b);
  *r = b == -1 ? 0 : a % b;
  if (*r != 0 && (*r < 0) != (b < 0)) *r += b;
  return true;
}

bool op_truncdiv(int64_t a, int64_t b, int64_t* r) {
  check_divisor(b);
  if (b == -1) return op_sub(0, a, r);
  *r = a / b;
  return true;
}

bool op_truncmod(int64_t a, int64_t b, int64_t* r) {
  check_divisor(b);
  *r = b == -1 ? 0 : a % b;
  return true;
}

bool op_and(int64_t a, int64_t b, int64_t* r) {
  *r = a & b;
  return true;
}

bool op_or(int64_t a, int64_t b, int64_t* r) {
  *r = a | b;
  return true;
}

bool op_xor(int64_t a, int64_t b, int64_t* r) {
  *r = a ^ b;
  return true;
}

// Per docs/semantics.md, shift amounts of the width or more, read as unsigned numbers, give 0.
bool op_shl(int64_t a, int64_t b, int64_t* r) {
  *r = bits(b) < 64 ? wrapped(bits(a) << b) : 0;
  return true;
}

bool op_shr(int64_t a, int64_t b, int64_t* r) {
  *r = bits(b) < 64 ? wrapped(bits(a) >> b) : 0;
  return true;
}

bool op_ashr(int64_t a, int64_t b, int64_t* r) {
  *r = bits(b) < 64 ? a >> b : 0;
  return true;
}

bool op_bcast(int64_t a, int64_t b, int64_t* r) {
  if (a != b && a != 1 && b != 1) {
    throw broadcast_failure(a, b);
  }
  *r = a == 1 ? b : a;
  return true;
}

}  // namespace
}  // namespace arithmetic

namespace {

constexpr BinaryOperation kOperations[] = {
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, mnemonic, number, result, ...) \
  {Opcode::identifier, BinaryResult::result, arithmetic::op_##mnemonic},
#define TENON_COMPARISON(identifier, mnemonic, number, exchanged, condition, ...)    \
  {Opcode::identifier, BinaryResult::Boolean, [](int64_t a, int64_t b, int64_t* r) { \
     *r = (condition);                                                               \
     return true;                                                                    \
   }},
#define TENON_FLOAT_BINARY(identifier, ...) {Opcode::identifier, BinaryResult::OfFloats, nullptr},
#define TENON_FLOAT_UNARY TENON_FLOAT_BINARY
#include "vm/isa/opcodes.def"
};

constexpr auto index_by_number() {
  std::array<uint8_t, kOpcodeNumbers> index{};
  index.fill(UINT8_MAX);
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    index.at(static_cast<size_t>(kOperations[i].opcode)) = static_cast<uint8_t>(i);
  }
  return index;
}
constexpr auto kByNumber = index_by_number();

}  // namespace

const BinaryOperation& binary_operation(Opcode opcode) {
  const size_t index = kByNumber.at(static_cast<size_t>(opcode));
  TENON_ASSERT(index < std::size(kOperations), info_of(opcode).mnemonic,
               " is not a binary operation");
  return kOperations[index];
}

}  // namespace tenon::vm
