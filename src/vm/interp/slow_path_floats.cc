// Arithmetic on floats in registers. A register holds a double; the numbers of narrower types are
// doubles, too. Computing +, -, *, / and sqrt in double and rounding the result to f32 gives what
// computing in f32 gives, since a double has more than twice as many digits.
#include <cmath>
#include <limits>

#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm::slow_path {
namespace {

double number(const AnyView& v, std::string_view what) {
  if (v.type_index != TypeIndex::Float) {
    throw Error(ErrorKind::Runtime, cat(what, " needs a float")).found(type_name(v.type_index));
  }
  return v.v.f;
}

// A float of that type. Files can state any dtype.
Any rounded(DataType to, double exact, float in_f32) {
  if (to == f64) return Any(exact);
  if (to != f32) {
    throw Error(ErrorKind::Runtime, "floats in registers are f32 or f64").found(to_text(to));
  }
  return Any(static_cast<double>(in_f32));
}

}  // namespace

Any float_result(Opcode opcode, const AnyView& left, const AnyView& right) {
  const std::string_view mnemonic = info_of(opcode).mnemonic;
  const double a = number(left, mnemonic), b = number(right, mnemonic);
  switch (opcode) {
#define TENON_OPCODE(...)
#define TENON_FLOAT_BINARY(identifier, mnemonic, number, expression, ...) \
  case Opcode::identifier:                                                \
    return Any(expression);
#define TENON_FLOAT_UNARY TENON_FLOAT_BINARY
#include "vm/isa/opcodes.def"
    default:
      return {};
  }
}

void op_round_float(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::RoundFloat> in(op);
  const double a = number(value_of(in["a"], base), in.mnemonic);
  finish(op, base, rounded(op.operands->dtype, a, static_cast<float>(a)));
}

void op_to_float(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ToFloat> in(op);
  const int64_t a = integer(in["a"], base, in.mnemonic);
  finish(op, base, rounded(op.operands->dtype, static_cast<double>(a), static_cast<float>(a)));
}

void op_to_integer(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ToInteger> in(op);
  const double a = number(value_of(in["a"], base), in.mnemonic);
  const DataType to = op.operands->dtype;
  if (to.is_bool()) return finish(op, base, Any(a != 0));
  if (to != i64) {
    throw Error(ErrorKind::Runtime, "to_integer converts only to i64 and bool").found(to_text(to));
  }
  constexpr double kEnd = 0x1p63;  // the first number beyond the range
  finish(op, base,
         Any(a >= kEnd    ? std::numeric_limits<int64_t>::max()
             : a >= -kEnd ? static_cast<int64_t>(a)
             : a < -kEnd  ? std::numeric_limits<int64_t>::min()
                          : int64_t{0}));
}

}  // namespace tenon::vm::slow_path
