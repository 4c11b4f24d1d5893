#include "loop/cost.h"

#include "loop/walk.h"

namespace tenon::loop {
namespace {

ScalarCost class_of(const Expr& e) {
  if (e.kind == ExprKind::kUnary) {
    const auto& u = static_cast<const Unary&>(e);
    return cost_of(info(u.op), u.a->dtype);
  }
  if (e.kind == ExprKind::kBinary) {
    const auto& b = static_cast<const Binary&>(e);
    return cost_of(info(b.op), b.a->dtype);
  }
  return ScalarCost::kSimple;
}

}  // namespace

int64_t own_cost(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kVar:
    case ExprKind::kLiteral:
    case ExprKind::kDimValue:
      return 0;
    default:
      break;
  }
  const bool is_index = e.dtype == i64 || e.dtype.is_bool();
  switch (class_of(e)) {
    case ScalarCost::kFree:
      return 0;
    case ScalarCost::kSimple:
      return is_index ? 1 : kSimpleCost;
    case ScalarCost::kDivision:
      return is_index ? 1 : kDivisionCost;
    case ScalarCost::kTranscendental:
      break;
  }
  return kTranscendentalCost;
}

int64_t cost(const ExprRef& root) {
  int64_t total = 0;
  post_order(root, [&](const ExprRef& e) { total += own_cost(*e); });
  return total;
}

bool is_costly(const Expr& e) {
  return e.kind == ExprKind::kLoad || e.kind == ExprKind::kCheckedIndex ||
         class_of(e) > ScalarCost::kSimple;
}

bool needs_kernel(const Expr& e) {
  if (e.kind == ExprKind::kCast) {
    const auto& c = static_cast<const Cast&>(e);
    return c.keeps_bits && (c.dtype.is_float() || c.a->dtype.is_float());
  }
  if (class_of(e) != ScalarCost::kTranscendental) return false;
  if (e.kind != ExprKind::kBinary) return true;
  const BinaryOp op = static_cast<const Binary&>(e).op;
  return op != BinaryOp::kMod && op != BinaryOp::kRem;
}

}  // namespace tenon::loop
