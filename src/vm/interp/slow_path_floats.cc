// Arithmetic on floats in registers. A register holds a double; the numbers of narrower types are
// doubles, too. Computing +, -, *, / and sqrt in double and rounding the result to f32 gives what
// computing in f32 gives, since a double has more than twice as many digits.
#include <cmath>
#include <limits>

#include "object/narrow_float.h"
#include "support/failures.h"
#include "vm/interp/arithmetic.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm::slow_path {
namespace {

double number(const AnyView& v, std::string_view what) {
  if (v.type_index != TypeIndex::Float) {
    throw_failure(cat(what, " needs a float"), type_name(v.type_index));
  }
  return v.v.f;
}

// Files can state any dtype.
void require(bool good, std::string_view what, DataType found) {
  if (!good) throw_failure(cat(what, " of another type"), to_text(found));
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
  const DataType to = op.operands->dtype;
  require(to.is_float(), in.mnemonic, to);
  finish(op, base, Any(round_to(to, number(value_of(in["a"], base), in.mnemonic))));
}

void op_to_float(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ToFloat> in(op);
  const int64_t a = integer(in["a"], base, in.mnemonic);
  const DataType to = op.operands->dtype;
  require(to == f32 || to == f64, in.mnemonic, to);
  finish(op, base, Any(to == f64 ? static_cast<double>(a) : static_cast<float>(a)));
}

void op_to_integer(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ToInteger> in(op);
  const double a = number(value_of(in["a"], base), in.mnemonic);
  const DataType to = op.operands->dtype;
  if (to.is_bool()) return finish(op, base, Any(a != 0));
  require(to.is_int() && to.bits <= 64, in.mnemonic, to);
  const bool is_signed = to.is_signed_int();
  // The first number beyond the range.
  const double end = static_cast<double>(uint64_t{1} << (to.bits - 1)) * (is_signed ? 1 : 2);
  const double least = is_signed ? -end : 0;
  const auto greatest = static_cast<int64_t>(UINT64_MAX >> (64 - to.bits + is_signed));
  finish(op, base,
         Any(a >= end      ? greatest
             : a >= 0x1p63 ? static_cast<int64_t>(static_cast<uint64_t>(a))
             : a >= least  ? static_cast<int64_t>(a)
             : a < least   ? static_cast<int64_t>(least)
                           : int64_t{0}));
}

}  // namespace tenon::vm::slow_path
