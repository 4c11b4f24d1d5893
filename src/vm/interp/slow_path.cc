#include "vm/interp/slow_path.h"

#include "support/failures.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/isa/opcode.h"

namespace tenon::vm::slow_path {
namespace {

Any scalar(int64_t v, bool is_bool) {
  return is_bool ? Any(v != 0) : Any(v);
}

bool has_boolean_result(BinaryResult result, const AnyView& a, const AnyView& b) {
  if (result == BinaryResult::Logical) return is_boolean(a) && is_boolean(b);
  return result == BinaryResult::Boolean;
}

}  // namespace

void binary(Machine&, const Op& op, AnyView* base) {
  const BinaryOperands& o = *op.binary;
  const AnyView &a = value_of(o.a, base), &b = value_of(o.b, base);
  if (o.operation->result == BinaryResult::OfFloats) {
    return put_result(base, op.a, float_result(o.operation->opcode, a, b));
  }
  if (!is_integer(a) || !is_integer(b)) {
    throw_failure(cat(info_of(o.operation->opcode).mnemonic, " needs an integer"),
                  type_name((is_integer(a) ? b : a).type_index));
  }
  int64_t r = 0;
  if (!o.operation->compute(a.v.i, b.v.i, &r)) fail_size_overflow(a.v.i, b.v.i);
  put_result(base, op.a, scalar(r, has_boolean_result(o.operation->result, a, b)));
}

void op_not(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Not> in(op);
  const int64_t v = integer(in["a"], base, in.mnemonic);
  const bool is_bool = value_of(in["a"], base).type_index == TypeIndex::Bool;
  finish(op, base, is_bool ? Any(v == 0) : Any(~v));
}

void op_narrow(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Narrow> in(op);
  const int64_t v = integer(in["a"], base, in.mnemonic);
  const DataType t = op.operands->dtype;
  if (!t.is_int() && !t.is_bool()) {
    throw_failure("narrow converts only to integers", to_text(t));
  }
  finish(op, base, scalar(wrap_to(t, v), t.is_bool()));
}

void op_select(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Select> in(op);
  const bool holds = integer(in["cond"], base, in.mnemonic) != 0;
  finish(op, base, Any(value_of(holds ? in["a"] : in["b"], base)));
}

void op_check(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Check> in(op);
  if (integer(in["cond"], base, in.mnemonic)) [[likely]]
    return;
  const auto form = in["message"].constant->as<std::string_view>();
  const std::span<const ValueRef> values = in.list("values");
  std::string message;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form.substr(i, 2) == "{}" && next < values.size()) {
      message += cat(integer(values[next++], base, "a message"));
      ++i;
    } else if (form.substr(i, 2) == "{{") {
      message += form[i++];
    } else {
      message += form[i];
    }
  }
  throw Error(ErrorKind::Runtime, printable(message, true));
}

void op_fatal(Machine&, const Op& op, AnyView*) {
  const Values<Opcode::Fatal> in(op);
  const auto message = in["message"].constant->as<std::string_view>();
  throw Error(ErrorKind::Runtime, printable(message, true));
}

void op_load_packed(Machine&, const Op& op, AnyView* base) {
  finish(op, base, Any(function_of(*op.as<Opcode::LoadPacked>().slot)));
}

void op_is_none(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::IsNone> in(op);
  finish(op, base, Any(value_of(in["value"], base).is_none()));
}

}  // namespace tenon::vm::slow_path
