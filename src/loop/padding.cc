#include "loop/padding.h"

namespace tenon::loop {
namespace {

// A graph of shared nodes may stand for an unlimited conjunction.
constexpr size_t kMostConditions = 100;

void split_conditions(const ExprRef& root, std::vector<ExprRef>* all) {
  std::vector<ExprRef> open{root};
  while (!open.empty()) {
    const ExprRef e = std::move(open.back());
    open.pop_back();
    const bool joins = e->kind == ExprKind::kBinary && e->dtype.is_bool() &&
                       static_cast<const Binary&>(*e).op == BinaryOp::kAnd;
    if (!joins || all->size() + open.size() >= kMostConditions) {
      all->push_back(e);
      continue;
    }
    open.push_back(static_cast<const Binary&>(*e).b);
    open.push_back(static_cast<const Binary&>(*e).a);
  }
}

bool is_identity(const ExprRef& e, const Work& w) {
  const ExprRef value = cast(w.accumulate, e), start = identity(w.reduction, w.accumulate);
  return value->kind == ExprKind::kLiteral &&
         static_cast<const Literal&>(*value).bits == static_cast<const Literal&>(*start).bits;
}

// The choice at the root of `body`, if its other side is the identity.
const Select* guard_of(const ExprRef& body, const Work& w) {
  if (body->kind != ExprKind::kSelect) return nullptr;
  const auto& choice = static_cast<const Select&>(*body);
  return is_identity(choice.if_false, w) ? &choice : nullptr;
}

// Tightens the range of the only reduced variable that the condition bounds. False if the
// condition must stay.
bool bound(const Work& w, const Var* along, const ExprRef& condition, std::vector<Range>* ranges) {
  const ExprRef f = not_negative(condition);
  if (!f || (along != nullptr && depends_on(f, Ref<const Var>(along)))) return false;
  int which = -1;
  int64_t c = 0;
  for (size_t i = 0; i < w.reduce.size(); ++i) {
    const auto d = coefficient(f, w.reduce[i].var);
    if (!d || !d->is_const()) return false;
    if (d->is_const(0)) continue;
    if (which >= 0) return false;
    which = static_cast<int>(i);
    c = *d->as_const();
  }
  if (which < 0 || c == INT64_MIN || !loads_in(f).empty()) return false;
  const Axis& axis = w.reduce[static_cast<size_t>(which)];
  Range& range = (*ranges)[static_cast<size_t>(which)];
  range = where_not_negative(c, substitute(f, {{axis.var.get(), index(0)}}), range);
  return true;
}

}  // namespace

Guarded guarded(const Work& w) {
  Guarded found{{}, w.body};
  while (found.conditions.size() < kMostConditions) {
    const Select* const choice = guard_of(found.body, w);
    if (choice == nullptr) break;
    split_conditions(choice->condition, &found.conditions);
    found.body = choice->if_true;
  }
  return found;
}

ExprRef with_conditions(const Guarded& g, const Work& w) {
  if (g.conditions.empty()) return g.body;
  ExprRef all = g.conditions[0];
  for (size_t i = 1; i < g.conditions.size(); ++i) {
    all = binary(BinaryOp::kAnd, all, g.conditions[i]);
  }
  return select(all, g.body, cast(g.body->dtype, identity(w.reduction, w.accumulate)));
}

ExprRef not_negative(const ExprRef& condition) {
  if (condition->kind != ExprKind::kBinary) return nullptr;
  const auto& b = static_cast<const Binary&>(*condition);
  if (b.a->dtype != i64 || !is_exact(b.a) || !is_exact(b.b)) return nullptr;
  if (b.op == BinaryOp::kLe) return difference(b.b, b.a);
  if (b.op == BinaryOp::kLt) return difference(difference(b.b, b.a), index(1));
  return nullptr;
}

Range where_not_negative(int64_t c, const ExprRef& rest, const Range& range) {
  if (c > 0) {  // v >= ceil(-rest / c)
    const ExprRef least = quotient(difference(index(c - 1), rest), index(c));
    return {binary(BinaryOp::kMax, range.begin, least), range.end};
  }
  // v <= floor(rest / -c)
  const ExprRef end = sum(quotient(rest, index(-c)), index(1));
  return {range.begin, smaller(range.end, end)};
}

std::vector<Range> restricted_ranges(const Work& w, const Var* along, ExprRef* body) {
  std::vector<Range> ranges;
  for (const Axis& a : w.reduce) ranges.push_back({index(0), dim_value(a.extent)});
  for (size_t asked = 0; asked < kMostConditions;) {
    const Select* const choice = guard_of(*body, w);
    if (choice == nullptr) break;
    std::vector<ExprRef> conditions;
    split_conditions(choice->condition, &conditions);
    asked += conditions.size();
    ExprRef left = literal_int(boolean, 1);
    bool any = false;
    for (const ExprRef& c : conditions) {
      if (bound(w, along, c, &ranges)) {
        any = true;
      } else {
        left = binary(BinaryOp::kAnd, left, c);
      }
    }
    if (!any) break;
    *body = select(left, choice->if_true, choice->if_false);
  }
  return ranges;
}

std::optional<InnerPlaces> inner_places(const Work& w, const Axis& axis,
                                        const std::vector<ExprRef>& conditions) {
  const ExprRef places = dim_value(axis.extent);
  InnerPlaces inner{{index(0), places}, {}};
  for (const ExprRef& condition : conditions) {
    if (!loads_in(condition).empty()) return std::nullopt;
    const ExprRef f = not_negative(condition);
    const auto c = f ? coefficient(f, axis.var) : std::nullopt;
    if (!c || !c->is_const() || c->is_const(0) || *c->as_const() == INT64_MIN) return std::nullopt;
    // At the step of the sum where it holds least.
    VarMap worst{{axis.var.get(), index(0)}};
    for (const Axis& a : w.reduce) {
      const auto d = coefficient(f, a.var);
      if (!d || !d->is_const()) return std::nullopt;
      worst[a.var.get()] = *d->as_const() < 0 ? dim_value(a.extent - Dim(1)) : index(0);
    }
    inner.range = where_not_negative(*c->as_const(), substitute(f, worst), inner.range);
    inner.not_negative.push_back(f);
  }
  inner.range.begin = smaller(inner.range.begin, places);
  inner.range.end = binary(BinaryOp::kMax, inner.range.begin, inner.range.end);
  return inner;
}

StmtRef loops_within(std::span<const Axis> axes, const std::vector<Range>& ranges, StmtRef body) {
  for (size_t i = axes.size(); i-- > 0;) {
    const Range& r = ranges[i];
    body = for_loop(axes[i].var, r.begin, difference(r.end, r.begin), ForKind::kSerial, body);
  }
  return body;
}

ExprRef with_padding_outside(const ExprRef& body) {
  if (body->kind != ExprKind::kBinary) return body;
  const auto& product = static_cast<const Binary&>(*body);
  if (product.op != BinaryOp::kMul) return body;
  auto guarded = [&](const ExprRef& side, const ExprRef& other) -> ExprRef {
    if (side->kind != ExprKind::kSelect) return nullptr;
    const auto& s = static_cast<const Select&>(*side);
    if (s.if_false->kind != ExprKind::kLiteral) return nullptr;
    if (static_cast<const Literal&>(*s.if_false).bits != 0) return nullptr;
    return select(s.condition, binary(BinaryOp::kMul, s.if_true, other), s.if_false);
  };
  if (ExprRef e = guarded(product.a, product.b)) return e;
  if (ExprRef e = guarded(product.b, product.a)) return e;
  return body;
}

}  // namespace tenon::loop
