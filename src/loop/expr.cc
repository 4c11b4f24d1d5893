#include "loop/expr.h"

#include <cmath>

#include "loop/scalar.h"
#include "loop/scalar_ops.h"
#include "loop/walk.h"
#include "object/reflect.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

ExprRef make_literal(DataType dtype, int64_t bits) {
  auto e = make<Literal>();
  e->dtype = dtype;
  e->bits = bits;
  return e;
}

const Literal* as_literal(const ExprRef& e) {
  return e->kind == ExprKind::kLiteral ? static_cast<const Literal*>(e.get()) : nullptr;
}

bool is_value(const ExprRef& e, double value) {
  const Literal* l = as_literal(e);
  if (!l) return false;
  if (!e->dtype.is_float()) return l->bits == static_cast<int64_t>(value);
  double d = as_float(l->bits);
  return d == value && !std::signbit(d);
}

DataType result_of(const ScalarOpInfo& op, DataType operands) {
  return op.tests ? boolean : operands;
}

ExprRef make_binary(BinaryOp op, ExprRef a, ExprRef b) {
  auto e = make<Binary>();
  e->dtype = result_of(info(op), a->dtype);
  e->op = op;
  e->a = std::move(a);
  e->b = std::move(b);
  return e;
}

// Null for what may wrap.
ExprRef modest_value(const Dim& d) {
  return has_small_coefficients(d) ? dim_value(d) : nullptr;
}

// Arithmetic on sizes gives a size. Null if there is no such operation, or if it fails on
// constants.
ExprRef fold_dims(BinaryOp op, const Dim& a, const Dim& b) {
  bool by_zero = b.is_const(0) && (op == BinaryOp::kFloorDiv || op == BinaryOp::kMod);
  if (by_zero) return nullptr;
  try {
    switch (op) {
      case BinaryOp::kAdd:
        return modest_value(a + b);
      case BinaryOp::kSub:
        return modest_value(a - b);
      case BinaryOp::kMul:
        return modest_value(a * b);
      case BinaryOp::kFloorDiv:
        return dim_value(floordiv(a, b));
      case BinaryOp::kMod:
        return dim_value(mod(a, b));
      case BinaryOp::kMin:
        return dim_value(min(a, b));
      case BinaryOp::kMax:
        return dim_value(max(a, b));
      case BinaryOp::kEq:
      case BinaryOp::kNe:
        if (a == b) return literal_int(boolean, op == BinaryOp::kEq);
        if (proves_differ(a, b)) return literal_int(boolean, op == BinaryOp::kNe);
        return nullptr;
      case BinaryOp::kLt:
        if (proves_less_equal(a + Dim(1), b)) return literal_int(boolean, 1);
        if (proves_less_equal(b, a)) return literal_int(boolean, 0);
        return nullptr;
      case BinaryOp::kLe:
        if (proves_less_equal(a, b)) return literal_int(boolean, 1);
        if (proves_less_equal(b + Dim(1), a)) return literal_int(boolean, 0);
        return nullptr;
      default:
        return nullptr;
    }
  } catch (const SizeError&) {
    return nullptr;  // constants overflow: the operation wraps at run time
  }
}

// Whether evaluating `e` can't fail; false if it is too large to be looked through each time.
bool cannot_fail(const ExprRef& e) {
  constexpr int64_t kMostNodes = 64;
  return count_nodes(e, kMostNodes) < kMostNodes && !any_can_fail(e);
}

// Identities that hold for every value, including NaN, infinities and -0. None drops an operand
// that can fail.
ExprRef fold_identity(BinaryOp op, const ExprRef& a, const ExprRef& b) {
  bool integral = !a->dtype.is_float();
  switch (op) {
    case BinaryOp::kAdd:
      if (integral && is_value(a, 0)) return b;
      if (integral && is_value(b, 0)) return a;
      break;
    case BinaryOp::kSub:
      if (is_value(b, 0)) return a;
      break;
    case BinaryOp::kMul:
      if (is_value(a, 1)) return b;
      if (is_value(b, 1)) return a;
      if (integral && is_value(a, 0) && cannot_fail(b)) return a;
      if (integral && is_value(b, 0) && cannot_fail(a)) return b;
      break;
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      if (is_value(b, 1) && (integral || op == BinaryOp::kDiv)) return a;
      break;
    case BinaryOp::kMod:
    case BinaryOp::kRem:
      if (integral && is_value(b, 1) && cannot_fail(a)) return make_literal(a->dtype, 0);
      break;
    case BinaryOp::kAnd:
    case BinaryOp::kOr: {
      if (a == b) return a;
      if (!a->dtype.is_bool()) break;
      bool is_and = op == BinaryOp::kAnd;
      if (as_literal(a) && is_value(a, 1) == is_and) return b;
      if (as_literal(b) && is_value(b, 1) == is_and) return a;
      if (as_literal(a) && cannot_fail(b)) return a;
      if (as_literal(b) && cannot_fail(a)) return b;
      break;
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (a == b) return a;
      break;
    default:
      break;
  }
  return nullptr;
}

// (x + c) + d and similar index expressions: moves constants last and combines them.
ExprRef fold_nested(BinaryOp op, const ExprRef& a, const ExprRef& b) {
  if (a->dtype != i64 || (op != BinaryOp::kAdd && op != BinaryOp::kSub)) return nullptr;
  if (op == BinaryOp::kAdd && as_dim(a) && !as_dim(b)) return binary(op, b, a);
  if (!as_dim(b) || a->kind != ExprKind::kBinary) return nullptr;
  const auto& inner = static_cast<const Binary&>(*a);
  if (!as_dim(inner.b)) return nullptr;
  if (inner.op == BinaryOp::kAdd) return binary(BinaryOp::kAdd, inner.a, binary(op, inner.b, b));
  if (inner.op != BinaryOp::kSub) return nullptr;
  return binary(BinaryOp::kAdd, inner.a, binary(op, binary(BinaryOp::kSub, index(0), inner.b), b));
}

}  // namespace

std::optional<int64_t> as_int(const ExprRef& e) {
  const Literal* l = as_literal(e);
  if (!l || e->dtype.is_float()) return std::nullopt;
  return l->bits;
}

std::optional<int64_t> known_int(const Expr& e) {
  if (e.kind == ExprKind::kDimValue) return static_cast<const DimValue&>(e).dim.as_const();
  if (e.kind != ExprKind::kLiteral || e.dtype.is_float()) return std::nullopt;
  return static_cast<const Literal&>(e).bits;
}

bool can_fail(const Binary& operation) {
  return can_fail(operation.op, operation.a->dtype) && known_int(*operation.b).value_or(0) == 0;
}

bool can_fail(const Expr& e) {
  return e.kind == ExprKind::kCheckedIndex ||
         (e.kind == ExprKind::kBinary && can_fail(static_cast<const Binary&>(e)));
}

std::optional<Dim> as_dim(const ExprRef& e) {
  if (e->kind == ExprKind::kDimValue) return static_cast<const DimValue&>(*e).dim;
  if (e->dtype != i64) return std::nullopt;
  if (auto v = as_int(e)) return Dim(*v);
  return std::nullopt;
}

Ref<const Var> var(std::string_view name, DataType dtype) {
  auto e = make<Var>();
  e->dtype = dtype;
  e->name = String(name);
  return e;
}

ExprRef literal(DataType dtype, double value) {
  if (dtype.is_float()) return make_literal(dtype, float_bits(round_to(dtype, value)));
  return make_literal(dtype, scalar_cast(dtype, f64, float_bits(value)));
}

ExprRef literal_int(DataType dtype, int64_t value) {
  return make_literal(dtype, scalar_cast(dtype, i64, value));
}

ExprRef zero(DataType dtype) {
  return make_literal(dtype, 0);
}

ExprRef literal_from_memory(DataType dtype, const void* element) {
  return make_literal(dtype, scalar_load(dtype, element));
}

ExprRef index(int64_t value) {
  return make_literal(i64, value);
}

ExprRef dim_value(const Dim& d) {
  if (auto v = d.as_const()) return index(*v);
  auto e = make<DimValue>();
  e->dtype = i64;
  e->dim = d;
  return e;
}

ExprRef load(const Ref<const Buffer>& buffer, Array<ExprRef> indices) {
  TENON_ASSERT(indices.size() == buffer->shape.size() || indices.size() == 1, "load of ",
               buffer->name, " with ", indices.size(), " indices");
  for (const ExprRef& i : indices) {
    TENON_ASSERT(i->dtype == i64, "load of ", buffer->name, " at an index of ", i->dtype);
  }
  auto e = make<Load>();
  e->dtype = buffer->dtype;
  e->buffer = buffer;
  e->indices = std::move(indices);
  return e;
}

ExprRef unary(UnaryOp op, ExprRef a) {
  TENON_ASSERT(takes(info(op), a->dtype), info(op).word, " of ", a->dtype);
  const DataType dtype = result_of(info(op), a->dtype);
  if (const Literal* l = as_literal(a)) {
    return make_literal(dtype, scalar_unary(op, a->dtype, l->bits));
  }
  if ((op == UnaryOp::kNot || op == UnaryOp::kNeg) && a->kind == ExprKind::kUnary) {
    const auto& inner = static_cast<const Unary&>(*a);
    if (inner.op == op) return inner.a;
  }
  auto e = make<Unary>();
  e->dtype = dtype;
  e->op = op;
  e->a = std::move(a);
  return e;
}

ExprRef binary(BinaryOp op, ExprRef a, ExprRef b) {
  TENON_ASSERT(a->dtype == b->dtype, info(op).word, " of ", a->dtype, " and ", b->dtype);
  TENON_ASSERT(takes(info(op), a->dtype), info(op).word, " of ", a->dtype);
  const Literal *x = as_literal(a), *y = as_literal(b);
  if (x && y) {
    if (auto v = scalar_binary(op, a->dtype, x->bits, y->bits)) {
      return make_literal(result_of(info(op), a->dtype), *v);
    }
    return make_binary(op, std::move(a), std::move(b));  // fails at run time
  }
  if (a->dtype == i64) {
    auto p = as_dim(a), q = as_dim(b);
    if (p && q) {
      if (ExprRef e = fold_dims(op, *p, *q)) return e;
    }
  }
  if (ExprRef e = fold_identity(op, a, b)) return e;
  if (ExprRef e = fold_nested(op, a, b)) return e;
  return make_binary(op, std::move(a), std::move(b));
}

ExprRef rounded(const ExprRef& e) {
  const Expr* inner = e.get();
  while (inner->kind == ExprKind::kUnary && static_cast<const Unary*>(inner)->op == UnaryOp::kNeg) {
    inner = static_cast<const Unary*>(inner)->a.get();
  }
  const bool is_product = inner->dtype.is_float() && inner->kind == ExprKind::kBinary &&
                          static_cast<const Binary*>(inner)->op == BinaryOp::kMul;
  return is_product ? unary(UnaryOp::kRounded, e) : e;
}

ExprRef select(ExprRef condition, ExprRef if_true, ExprRef if_false) {
  TENON_ASSERT(condition->dtype.is_bool(), "select by ", condition->dtype);
  TENON_ASSERT(if_true->dtype == if_false->dtype, "select of ", if_true->dtype, " and ",
               if_false->dtype);
  if (const Literal* l = as_literal(condition)) return l->bits ? if_true : if_false;
  if (if_true == if_false) return if_true;
  auto e = make<Select>();
  e->dtype = if_true->dtype;
  e->condition = std::move(condition);
  e->if_true = std::move(if_true);
  e->if_false = std::move(if_false);
  return e;
}

ExprRef cast(DataType dtype, ExprRef a) {
  if (a->dtype == dtype) return a;
  TENON_ASSERT(!a->dtype.is_complex() && !dtype.is_complex(), a->dtype, " as ", dtype);
  if (const Literal* l = as_literal(a)) {
    return make_literal(dtype, scalar_cast(dtype, a->dtype, l->bits));
  }
  auto e = make<Cast>();
  e->dtype = dtype;
  e->a = std::move(a);
  return e;
}

ExprRef bit_cast(DataType dtype, ExprRef a) {
  if (a->dtype == dtype) return a;
  TENON_ASSERT(a->dtype.bits == dtype.bits && !a->dtype.is_bool() && !dtype.is_bool(),
               "the bits of ", a->dtype, " as ", dtype);
  if (const Literal* l = as_literal(a)) {
    return make_literal(dtype, scalar_bit_cast(dtype, a->dtype, l->bits));
  }
  auto e = make<Cast>();
  e->dtype = dtype;
  e->a = std::move(a);
  e->keeps_bits = true;
  return e;
}

ExprRef checked_index(ExprRef i, Dim extent) {
  TENON_ASSERT(i->dtype == i64, "checked index of ", i->dtype);
  if (auto v = as_int(i)) {
    auto size = extent.as_const();
    if (*v >= 0 && (size ? *v < *size : proves_less_equal(Dim(*v) + Dim(1), extent))) return i;
    if (*v < 0 && size && *size >= 0 && *v >= -*size) return index(*v + *size);
  }
  auto e = make<CheckedIndex>();
  e->dtype = i64;
  e->index = std::move(i);
  e->extent = std::move(extent);
  return e;
}

ExprRef lowest(DataType t) {
  if (t.is_float()) return literal(t, -INFINITY);
  if (!t.is_signed_int()) return make_literal(t, 0);
  return make_literal(t, static_cast<int64_t>(~uint64_t{0} << (t.bits - 1)));
}

ExprRef highest(DataType t) {
  if (t.is_float()) return literal(t, INFINITY);
  if (t.is_bool()) return make_literal(t, 1);
  if (t.is_unsigned_int()) return make_literal(t, wrap_to(t, -1));
  return make_literal(t, static_cast<int64_t>((uint64_t{1} << (t.bits - 1)) - 1));
}

}  // namespace tenon::loop
