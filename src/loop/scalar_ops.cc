#include "loop/scalar_ops.h"

namespace tenon::loop {
namespace {

enum Operands : uint8_t { Bools = 1, Ints = 2, Floats = 4 };
enum Result : bool { Same, Truth };
enum Fails : bool { Never, OnZero };

constexpr ScalarCost Free = ScalarCost::kFree, Simple = ScalarCost::kSimple,
                     Division = ScalarCost::kDivision, Transcendental = ScalarCost::kTranscendental;

constexpr ScalarOpInfo kUnary[] = {
#define TENON_UNARY(op, word, operands, result, cost) \
  {word, operands, result == Truth, false, cost, cost},
#define TENON_BINARY(op, word, operands, result, fails, integer_cost, float_cost)
#include "loop/scalar_ops.def"
#undef TENON_UNARY
#undef TENON_BINARY
};

constexpr ScalarOpInfo kBinary[] = {
#define TENON_UNARY(op, word, operands, result, cost)
#define TENON_BINARY(op, word, operands, result, fails, integer_cost, float_cost) \
  {word, operands, result == Truth, fails == OnZero, integer_cost, float_cost},
#include "loop/scalar_ops.def"
#undef TENON_UNARY
#undef TENON_BINARY
};

}  // namespace

std::span<const ScalarOpInfo> unary_ops() {
  return kUnary;
}

std::span<const ScalarOpInfo> binary_ops() {
  return kBinary;
}

bool takes(const ScalarOpInfo& op, DataType dtype) {
  if (dtype.is_complex()) return false;
  const Operands needed = dtype.is_bool() ? Bools : dtype.is_float() ? Floats : Ints;
  return (op.operands & needed) != 0;
}

}  // namespace tenon::loop
