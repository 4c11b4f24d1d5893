#include "loop/broken_rule.h"

#include <cmath>

#include "loop/scalar.h"
#include "loop/scalar_ops.h"
#include "object/tensor.h"

namespace tenon::loop {

bool is_scalar(DataType t) {
  return is_tensor_dtype(t);
}

namespace {

bool is_value_of_its_type(const Literal& e) {
  if (e.dtype.is_complex()) return e.bits == 0;
  if (!e.dtype.is_float()) return scalar_cast(e.dtype, i64, e.bits) == e.bits;
  const double value = as_float(e.bits);
  return std::isnan(value) || round_to(e.dtype, value) == value;
}

DataType result_of(const ScalarOpInfo& op, DataType operands) {
  return op.tests ? boolean : operands;
}

std::string_view unless(bool holds, std::string_view rule) {
  return holds ? std::string_view() : rule;
}

}  // namespace

std::string_view broken_rule(const Expr& e) {
  if (!is_scalar(e.dtype)) return "a value is an integer, a float, a boolean or a complex number";
  switch (e.kind) {
    case ExprKind::kVar:
      return {};
    case ExprKind::kCast: {
      const auto& c = static_cast<const Cast&>(e);
      if (!c.keeps_bits)
        return unless(!e.dtype.is_complex() && !c.a->dtype.is_complex(),
                      "complex numbers are not converted");
      const bool fits = c.a->dtype.bits == e.dtype.bits && c.a->dtype.lanes == e.dtype.lanes &&
                        !c.a->dtype.is_bool() && !e.dtype.is_bool();
      return unless(fits, "bits are read as another number of their width");
    }
    case ExprKind::kLiteral:
      return unless(is_value_of_its_type(static_cast<const Literal&>(e)),
                    "a literal is a value of its dtype");
    case ExprKind::kDimValue:
      return unless(e.dtype == i64, "a size is an i64");
    case ExprKind::kLoad: {
      const auto& l = static_cast<const Load&>(e);
      for (const ExprRef& i : l.indices) {
        if (i->dtype != i64) return "indices are i64";
      }
      return unless(e.dtype == l.buffer->dtype, "a load has the buffer's dtype");
    }
    case ExprKind::kUnary: {
      const auto& u = static_cast<const Unary&>(e);
      const ScalarOpInfo& op = info(u.op);
      return unless(takes(op, u.a->dtype) && e.dtype == result_of(op, u.a->dtype),
                    "an operator's dtype follows from its operand's");
    }
    case ExprKind::kBinary: {
      const auto& b = static_cast<const Binary&>(e);
      const ScalarOpInfo& op = info(b.op);
      const DataType operands = b.a->dtype;
      return unless(
          b.b->dtype == operands && takes(op, operands) && e.dtype == result_of(op, operands),
          "an operator's dtype follows from its operands', which have the same");
    }
    case ExprKind::kSelect: {
      const auto& s = static_cast<const Select&>(e);
      return unless(s.condition->dtype == boolean && s.if_true->dtype == e.dtype &&
                        s.if_false->dtype == e.dtype,
                    "a select chooses by a boolean between values of its dtype");
    }
    case ExprKind::kCheckedIndex:
      return unless(e.dtype == i64 && static_cast<const CheckedIndex&>(e).index->dtype == i64,
                    "indices are i64");
  }
  return "an expression is of a known kind";
}

}  // namespace tenon::loop
