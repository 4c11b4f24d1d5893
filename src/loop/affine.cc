#include "loop/affine.h"

#include <cmath>
#include <unordered_map>

#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {

std::optional<Dim> Coefficients::operator()(const ExprRef& root) {
  return known_(root, [&](const Expr& e) -> std::optional<Dim> {
    try {
      return find(e);
    } catch (const SizeError&) {  // not of this form, as far as sizes tell
      return std::nullopt;
    }
  });
}

std::optional<Dim> Coefficients::find(const Expr& e) const {
  if (e.kind == ExprKind::kVar) return &e == var_.get() ? Dim(1) : Dim(0);
  if (e.kind == ExprKind::kLoad && loads_are_free_) return Dim(0);
  const auto of = [&](const ExprRef& operand) { return known_.at(operand); };
  bool free = true;
  for_operands(e, [&](const ExprRef& operand) {
    const auto part = of(operand);
    free = free && part && part->is_const(0);
  });
  if (free) return Dim(0);
  if (e.kind != ExprKind::kBinary || e.dtype != i64) return std::nullopt;
  const auto& b = static_cast<const Binary&>(e);
  const auto x = of(b.a), y = of(b.b);
  if (x && y && b.op == BinaryOp::kAdd) return *x + *y;
  if (x && y && b.op == BinaryOp::kSub) return *x - *y;
  if (b.op != BinaryOp::kMul) return std::nullopt;
  const auto p = as_dim(b.a), q = as_dim(b.b);
  if (y && p) return *y * *p;
  return x && q ? std::optional(*x * *q) : std::nullopt;
}

std::optional<Dim> coefficient(const ExprRef& e, const Ref<const Var>& v, bool loads_are_free) {
  return Coefficients(v, loads_are_free)(e);
}

namespace {

// constant + the sum of coefficient * atom.
struct Sum {
  std::vector<std::pair<ExprRef, Dim>> terms;
  Dim constant = 0;

  void add(const ExprRef& atom, const Dim& c) {
    for (auto& [a, d] : terms) {
      if (a == atom) {
        d = d + c;
        return;
      }
    }
    terms.emplace_back(atom, c);
  }
  bool empty() const { return terms.empty() && constant.is_const(0); }
};

bool divides(const Dim& by, const Dim& d) {
  return !by.is_const(0) && floordiv(d, by) * by == d;
}

// Whether expressions contain a loaded element or what may wrap like one (`as_stored`): such
// integers can have any value, whereas indices, sizes and checked indices stay far from the limits.
class DataFinder {
 public:
  bool operator()(const ExprRef& root) {
    return known_(root, [&](const Expr& e) { return find(e); });
  }

 private:
  bool find(const Expr& e) const {
    bool found = e.kind == ExprKind::kLoad || e.kind == ExprKind::kUnary;
    if (e.kind == ExprKind::kCheckedIndex) return found;
    for_operands(e, [&](const ExprRef& o) { found = found || known_.at(o); });
    return found;
  }

  ExprMemo<bool> known_;
};

constexpr double kWraps = 0x1p62;

using Tops = std::unordered_map<const Var*, Dim>;  // the greatest values of variables

// The greatest magnitudes of integers of i64: infinite if they are data, or an operation may wrap.
class Magnitudes {
 public:
  // With the variables' greatest values, of indices: those of unknown sizes are below 2^30, and
  // products with symbolic sizes count as such indices. Without, of any integers.
  explicit Magnitudes(const Tops* tops) : tops_(tops), size_(tops ? 0x1p30 : 0x1p40) {}

  double operator()(const ExprRef& root) {
    return greatest_(root, [&](const Expr& node) {
      const double found = find(node);
      return found < kWraps ? found : HUGE_VAL;
    });
  }

  double of_size(const Dim& d) const {
    if (d.is_const()) return std::fabs(static_cast<double>(*d.as_const()));
    // Sums of products of sizes: those of several are sizes of tensors, too.
    return has_small_coefficients(d) ? size_ : HUGE_VAL;
  }
  double times(double x, const Dim& factor) const {
    const double y = of_size(factor);
    return tops_ && !factor.is_const() ? std::max(x, y) : x * y;
  }

 private:
  double find(const Expr& node) const {
    switch (node.kind) {
      case ExprKind::kVar:
        return of_variable(static_cast<const Var&>(node));
      case ExprKind::kCheckedIndex:
        return size_;
      case ExprKind::kLiteral:
        return std::fabs(static_cast<double>(static_cast<const Literal&>(node).bits));
      case ExprKind::kDimValue:
        return of_size(static_cast<const DimValue&>(node).dim);
      case ExprKind::kSelect: {
        const auto& s = static_cast<const Select&>(node);
        return std::max(greatest_.at(s.if_true), greatest_.at(s.if_false));
      }
      case ExprKind::kBinary:
        return of_binary(static_cast<const Binary&>(node));
      default:
        return HUGE_VAL;
    }
  }

  double of_variable(const Var& v) const {
    const auto found = tops_ ? tops_->find(&v) : Tops::const_iterator();
    return tops_ && found != tops_->end() ? of_size(found->second) : size_;
  }

  double of_binary(const Binary& b) const {
    const double x = greatest_.at(b.a), y = greatest_.at(b.b);
    switch (b.op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
        return x + y;
      case BinaryOp::kMul:
        if (const auto by = as_dim(b.b)) return times(x, *by);
        if (const auto by = as_dim(b.a)) return times(y, *by);
        return x * y;
      case BinaryOp::kFloorDiv:
        return x;
      case BinaryOp::kMod:
        return std::isinf(x) ? x : y;
      case BinaryOp::kMin:
      case BinaryOp::kMax:
        return std::max(x, y);
      default:
        return HUGE_VAL;
    }
  }

  const Tops* tops_;
  double size_;
  ExprMemo<double> greatest_;
};

class IndexSimplifier {
 public:
  explicit IndexSimplifier(const std::vector<VarRange>& ranges) {
    for (const VarRange& r : ranges) top_.emplace(r.var.get(), r.extent - Dim(1));
  }

  ExprRef operator()(const ExprRef& root) {
    Rewriter rewrite([&](const ExprRef& e) { return visit(e); });
    return rewrite(root);
  }

 private:
  ExprRef visit(const ExprRef& e) {
    if (e->kind != ExprKind::kBinary || e->dtype != i64) return e;
    const auto& b = static_cast<const Binary&>(*e);
    if (b.op != BinaryOp::kFloorDiv && b.op != BinaryOp::kMod) return e;
    const auto by = as_divisor(b.b);
    if (!by) return e;
    try {
      Sum s;
      int steps = kMostSteps;
      split(b.a, Dim(1), &s, &steps);
      if (!is_small(s.constant)) return e;
      double greatest = magnitudes_.of_size(s.constant);
      for (const auto& [atom, c] : s.terms) {
        if (!is_small(c)) return e;
        greatest += magnitudes_.times(magnitudes_(atom), c);
      }
      if (!(greatest < kWraps)) return e;
      return b.op == BinaryOp::kFloorDiv ? quotient(s, *by) : remainder(s, *by);
    } catch (const SizeError&) {
      return e;  // a size overflows: left unchanged
    }
  }

  // Whether an index times `c`, or plus it, can't wrap.
  static bool is_small(const Dim& c) {
    constexpr int64_t kMost = int64_t{1} << 31;
    return has_small_coefficients(c) &&
           (!c.is_const() || (*c.as_const() <= kMost && *c.as_const() >= -kMost));
  }

  // Operators don't make indices with more terms or deeper nesting; the rest then counts as one
  // term. A graph of shared nodes may stand for an unlimited sum.
  static constexpr int kMostSteps = 1000, kMostLevels = 50;

  void split(const ExprRef& e, const Dim& scale, Sum* out, int* steps) {
    if (auto d = as_dim(e)) {
      out->constant = out->constant + *d * scale;
      return;
    }
    if (e->kind == ExprKind::kBinary && --*steps > 0) {
      const auto& b = static_cast<const Binary&>(*e);
      if (b.op == BinaryOp::kAdd || b.op == BinaryOp::kSub) {
        split(b.a, scale, out, steps);
        split(b.b, b.op == BinaryOp::kAdd ? scale : Dim(0) - scale, out, steps);
        return;
      }
      if (b.op == BinaryOp::kMul) {
        if (auto d = as_dim(b.b)) return split(b.a, scale * *d, out, steps);
        if (auto d = as_dim(b.a)) return split(b.b, scale * *d, out, steps);
      }
    }
    out->add(e, scale);
  }

  static ExprRef join(const Sum& s) {
    ExprRef e = index(0);
    for (const auto& [atom, c] : s.terms) {
      e = binary(BinaryOp::kAdd, e, binary(BinaryOp::kMul, atom, dim_value(c)));
    }
    return binary(BinaryOp::kAdd, e, dim_value(s.constant));
  }

  // The maximum of an expression that is never negative.
  std::optional<Dim> top(const ExprRef& e, int levels = kMostLevels) const {
    if (e->kind == ExprKind::kVar) {
      auto it = top_.find(static_cast<const Var*>(e.get()));
      if (it != top_.end()) return it->second;
    }
    if (e->kind == ExprKind::kBinary) {
      const auto& b = static_cast<const Binary&>(*e);
      const auto by = as_divisor(b.b);
      if (by && b.op == BinaryOp::kMod) return *by - Dim(1);
      if (by && b.op == BinaryOp::kFloorDiv && levels > 0) {
        if (auto t = top(b.a, levels - 1)) return floordiv(*t, *by);
      }
    }
    return std::nullopt;
  }

  // Whether 0 <= s < limit.
  bool within(const Sum& s, const Dim& limit) const {
    if (!proves_nonnegative(s.constant)) return false;
    Dim greatest = s.constant;
    for (const auto& [atom, c] : s.terms) {
      auto t = top(atom);
      if (!t || !proves_nonnegative(c)) return false;
      greatest = greatest + c * *t;
    }
    // c * (extent - 1) is negative for extent 0, but then there is no element.
    return proves_less_equal(greatest + Dim(1), limit);
  }

  // Moves the terms divisible by `by` out of `s`, divided by it.
  static Sum take_multiples(Sum* s, const Dim& by) {
    Sum taken, rest;
    for (const auto& [atom, c] : s->terms) {
      divides(by, c) ? taken.add(atom, floordiv(c, by)) : rest.add(atom, c);
    }
    if (by.is_const() && s->constant.is_const()) {
      taken.constant = floordiv(s->constant, by);
      rest.constant = mod(s->constant, by);
    } else if (divides(by, s->constant)) {
      taken.constant = floordiv(s->constant, by);
    } else {
      rest.constant = s->constant;
    }
    *s = rest;
    return taken;
  }

  // Splits s = g * high + low with 0 <= low < g, where g divides `by`.
  struct Parts {
    Dim g;
    Sum high, low;
  };
  std::optional<Parts> common(const Sum& s, const Dim& by) const {
    for (const auto& [atom, c] : s.terms) {
      if (c.is_const(1) || c == by || !proves_nonnegative(c) || !divides(c, by)) continue;
      Parts p{c, {}, s};
      p.high = take_multiples(&p.low, c);
      if (within(p.low, c)) return p;
    }
    return std::nullopt;
  }

  ExprRef quotient(Sum s, const Dim& by) {
    Sum whole = take_multiples(&s, by);
    ExprRef e = join(whole);
    if (s.empty() || within(s, by)) return e;
    ExprRef rest;
    if (auto p = common(s, by)) {
      rest = quotient(p->high, floordiv(by, p->g));
    } else {
      rest = binary(BinaryOp::kFloorDiv, join(s), dim_value(by));
    }
    return binary(BinaryOp::kAdd, e, rest);
  }

  ExprRef remainder(Sum s, const Dim& by) {
    take_multiples(&s, by);
    if (s.empty() || within(s, by)) return join(s);
    if (auto p = common(s, by)) {
      ExprRef high = remainder(p->high, floordiv(by, p->g));
      return binary(BinaryOp::kAdd, binary(BinaryOp::kMul, high, dim_value(p->g)), join(p->low));
    }
    return binary(BinaryOp::kMod, join(s), dim_value(by));
  }

  Tops top_;
  Magnitudes magnitudes_{&top_};
};

}  // namespace

std::optional<Dim> as_divisor(const ExprRef& e) {
  auto by = as_dim(e);
  const bool is_positive = by && !by->is_const(0) && lower_bound(*by).value_or(-1) >= 0;
  return is_positive ? by : std::nullopt;
}

bool is_exact(const ExprRef& e) {
  return Magnitudes(nullptr)(e) < kWraps;
}

ExprRef as_stored(const ExprRef& e) {
  if (e->dtype != i64) return rounded(e);
  if (as_dim(e) || is_exact(e) || DataFinder()(e)) return e;
  return unary(UnaryOp::kRounded, e);
}

ExprRef simplify_indices(const ExprRef& e, const std::vector<VarRange>& ranges) {
  bool divides_any = false;
  post_order(e, [&](const ExprRef& node) {
    if (node->kind != ExprKind::kBinary || node->dtype != i64) return;
    BinaryOp op = static_cast<const Binary&>(*node).op;
    divides_any = divides_any || op == BinaryOp::kFloorDiv || op == BinaryOp::kMod;
  });
  return divides_any ? IndexSimplifier(ranges)(e) : e;
}

std::vector<Dim> strides_of(const Array<Dim>& shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

ExprRef flat_offset(const Array<Dim>& shape, const Array<ExprRef>& indices,
                    const std::vector<Ref<const Var>>& vars) {
  auto add = [](const ExprRef& a, const ExprRef& b) { return binary(BinaryOp::kAdd, a, b); };
  auto times = [](const ExprRef& a, const Dim& d) {
    return binary(BinaryOp::kMul, a, dim_value(d));
  };
  ExprRef whole = index(0);
  if (indices.size() == 1 && shape.size() != 1) {
    whole = indices[0];
  } else {
    std::vector<Dim> strides = strides_of(shape);
    for (size_t i = 0; i < indices.size(); ++i) whole = add(whole, times(indices[i], strides[i]));
  }
  VarMap zero;
  std::vector<std::pair<Ref<const Var>, Dim>> terms;
  for (const auto& v : vars) {
    auto c = coefficient(whole, v);
    if (!c || c->is_const(0)) continue;
    terms.emplace_back(v, *c);
    zero[v.get()] = index(0);
  }
  ExprRef offset = substitute(whole, zero);
  for (const auto& [v, c] : terms) offset = add(offset, times(v, c));
  return offset;
}

ExprRef flatten_loads(const ExprRef& e, const std::vector<Ref<const Var>>& vars) {
  Rewriter rewrite([&](const ExprRef& node) -> ExprRef {
    if (node->kind != ExprKind::kLoad) return node;
    const auto& l = static_cast<const Load&>(*node);
    if (l.indices.empty()) return node;
    return load(l.buffer, {flat_offset(l.buffer->shape, l.indices, vars)});
  });
  return rewrite(e);
}

std::vector<const Load*> loads_in(const ExprRef& e) {
  std::vector<const Load*> all;
  post_order(e, [&](const ExprRef& node) {
    if (node->kind == ExprKind::kLoad) all.push_back(static_cast<const Load*>(node.get()));
  });
  return all;
}

}  // namespace tenon::loop
