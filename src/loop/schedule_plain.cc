#include "loop/schedule_plain.h"

#include "support/error.h"

namespace tenon::loop {
namespace {

ExprRef op(BinaryOp o, ExprRef a, ExprRef b) {
  return binary(o, std::move(a), std::move(b));
}

Array<ExprRef> as_indices(const Array<Ref<const Var>>& axes) {
  Array<ExprRef> at;
  for (const auto& a : axes) at.push_back(a);
  return at;
}

StmtRef arg_reduction(const Stage& s, const std::function<StmtRef(const ExprRef&)>& finish) {
  auto best = buffer("best", s.body->dtype, {});
  auto place = buffer("place", i64, {});
  const Ref<const Var>& k = s.reduce_axes[0];
  auto value = var("value", s.body->dtype);
  ExprRef first = op(BinaryOp::kEq, k, index(0));
  ExprRef take = op(BinaryOp::kOr, first, replaces(s.reduction, value, load(best, {})));
  StmtRef step =
      let(value, s.body, if_then(take, seq({store(best, {}, value), store(place, {}, k)})));
  StmtRef all = seq({store(best, {}, zero(s.body->dtype)), store(place, {}, index(0)),
                     serial_loops(s.reduce_axes, s.reduce_extents, step), finish(load(place, {}))});
  return alloc(best, alloc(place, all));
}

}  // namespace

ExprRef replaces(Reduction r, const ExprRef& value, const ExprRef& best) {
  const bool greatest = finds_greatest(r), last = finds_last(r);
  const ExprRef &low = greatest ? best : value, &high = greatest ? value : best;
  ExprRef better = op(last ? BinaryOp::kLe : BinaryOp::kLt, low, high);
  if (!value->dtype.is_float()) return better;
  ExprRef value_nan = unary(UnaryOp::kIsNan, value), best_nan = unary(UnaryOp::kIsNan, best);
  // Comparisons with NaN are false, so `better` is true only between numbers.
  ExprRef by_nan = last ? value_nan : op(BinaryOp::kAnd, value_nan, unary(UnaryOp::kNot, best_nan));
  return op(BinaryOp::kOr, better, by_nan);
}

StmtRef serial_loops(const Array<Ref<const Var>>& vars, const Array<Dim>& extents, StmtRef body) {
  for (size_t i = vars.size(); i-- > 0;) {
    body = for_loop(vars[i], index(0), dim_value(extents[i]), ForKind::kSerial, body);
  }
  return body;
}

StmtRef plain_updates(const Stage& s) {
  // Each index gets a name: it is used twice, and may be checked.
  std::vector<Ref<const Var>> at;
  Array<ExprRef> where;
  for (size_t i = 0; i < s.scatter_indices.size(); ++i) {
    at.push_back(var(cat("at", i), i64));
    where.push_back(at.back());
  }
  ExprRef value = s.update;
  if (s.reduction != Reduction::kNone) value = combine(s.reduction, load(s.out, where), value);
  StmtRef step = store(s.out, where, value);
  for (size_t i = at.size(); i-- > 0;) step = let(at[i], s.scatter_indices[i], step);
  return serial_loops(s.reduce_axes, s.reduce_extents, step);
}

StmtRef plain_reduction(const Stage& s, const std::function<StmtRef(const ExprRef&)>& finish) {
  if (is_arg_reduction(s.reduction)) return arg_reduction(s, finish);
  DataType t = accumulator_type(s);
  auto acc = buffer("acc", t, {});
  StmtRef step = store(acc, {}, combine(s.reduction, load(acc, {}), cast(t, s.body)));
  return alloc(acc,
               seq({store(acc, {}, identity(s.reduction, t)),
                    serial_loops(s.reduce_axes, s.reduce_extents, step), finish(load(acc, {}))}));
}

StmtRef plain_stage(const Stage& s, bool clear_scans) {
  Array<ExprRef> at = as_indices(s.axes);
  switch (s.kind) {
    case StageKind::kScan:
      if (clear_scans) {
        return seq({serial_loops(s.axes, s.out->shape, store(s.out, at, zero(s.out->dtype))),
                    serial_loops(s.axes, s.out->shape, store(s.out, at, s.body))});
      }
      [[fallthrough]];
    case StageKind::kMap:
      return serial_loops(s.axes, s.out->shape, store(s.out, at, s.body));
    case StageKind::kReduce:
      return serial_loops(s.axes, s.out->shape, plain_reduction(s, [&](const ExprRef& result) {
                            return store(s.out, at, cast(s.out->dtype, result));
                          }));
    case StageKind::kScatter:
      return seq({serial_loops(s.axes, s.out->shape, store(s.out, at, s.body)), plain_updates(s)});
  }
  return seq({});
}

}  // namespace tenon::loop
