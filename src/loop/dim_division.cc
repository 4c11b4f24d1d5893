// floordiv and mod of Dims: multiples of the divisor are split off, common factors cancel, and
// results that bounds determine become constants.
#include "loop/dim_terms.h"
#include "support/error.h"
#include "support/rounding.h"
#include "support/text.h"

namespace tenon {

using dim_terms::common_divisor;
using dim_terms::make_node;
using dim_terms::Term;
using dim_terms::Terms;

namespace {

[[noreturn]] void zero_divisor(const char* what, const Dim& a) {
  throw SizeError(
      Error(ErrorKind::Usage, cat("a size is divided by zero: ", what, "(", to_text(a), ", 0)")));
}

Dim arg(const DimNode& n, size_t i) {
  return Dim(n.args[i]);
}

Terms negated(Terms t) {
  for (Term& x : t) {
    if (__builtin_sub_overflow(int64_t{0}, x.coefficient, &x.coefficient)) {
      dim_terms::overflow("a negation");
    }
  }
  return t;
}

// Divides `rest` and `divisor` by the atoms common to all their terms. Returns whether there were
// any.
bool cancel_atoms(Terms* rest, Term* divisor) {
  bool changed = false;
  for (size_t i = 0; i < divisor->atoms.size();) {
    Term factor{1, {divisor->atoms[i]}};
    Terms divided;
    for (const Term& t : *rest) {
      std::optional<Term> q = dim_terms::divide(t, factor);
      if (!q) break;
      divided.push_back(std::move(*q));
    }
    if (divided.size() == rest->size()) {
      *rest = std::move(divided);
      divisor->atoms.erase(divisor->atoms.begin() + static_cast<std::ptrdiff_t>(i));
      changed = true;
    } else {
      ++i;
    }
  }
  if (changed) dim_terms::normalise(rest);
  return changed;
}

// The greatest common divisor of all coefficients, excluding the constant term if `skip_constant`.
int64_t common_coefficient(const Terms& terms, int64_t g, bool skip_constant) {
  for (const Term& t : terms) {
    if (skip_constant && t.atoms.empty()) continue;
    g = common_divisor(g, t.coefficient);
  }
  return g;
}

// Splits off the multiples of the divisor (returned, divided) from the other terms (left in
// `terms`); of a constant, the remainder is left.
Terms take_multiples(Terms* terms, const Term& divisor) {
  Terms quotient, rest;
  for (Term& t : *terms) {
    if (divisor.atoms.empty() && t.atoms.empty()) {
      int64_t q = floor_quotient(t.coefficient, divisor.coefficient);
      if (q != 0) quotient.push_back(Term{q, {}});
      t.coefficient = floor_remainder(t.coefficient, divisor.coefficient);
      if (t.coefficient != 0) rest.push_back(std::move(t));
    } else if (std::optional<Term> q = dim_terms::divide(t, divisor)) {
      quotient.push_back(std::move(*q));
    } else {
      rest.push_back(std::move(t));
    }
  }
  *terms = std::move(rest);
  return quotient;
}

// The atom, if the sum consists of a single atom with coefficient 1.
const DimNode* sole_atom(const Terms& terms) {
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].atoms.size() != 1) return nullptr;
  return terms[0].atoms[0];
}

}  // namespace

Dim floordiv(const Dim& a, const Dim& b) {
  if (b.is_const(0)) zero_divisor("floordiv", a);
  if (b.is_const(1)) return a;
  if (a.is_const(0)) return Dim(0);
  if (a == b) return Dim(1);
  Terms divisor = dim_terms::of(b);
  if (divisor[0].coefficient < 0) {
    return floordiv(dim_terms::build(negated(dim_terms::of(a))),
                    dim_terms::build(negated(divisor)));
  }
  Terms rest = dim_terms::of(a);
  if (divisor.size() > 1) {
    if (auto q = dim_terms::divide_exactly(rest, divisor)) return dim_terms::build(*q);
    return make_node(DimKind::kFloorDiv, {a, b});
  }
  Term d = divisor[0];
  Dim quotient = dim_terms::build(take_multiples(&rest, d));
  if (rest.empty()) return quotient;

  bool reduced = cancel_atoms(&rest, &d);
  bool constant = d.atoms.empty();
  int64_t g = common_coefficient(rest, d.coefficient, constant);
  if (g > 1) {
    for (Term& t : rest) t.coefficient = floor_quotient(t.coefficient, g);
    d.coefficient /= g;
    dim_terms::normalise(&rest);
    reduced = true;
  }
  if (reduced) return quotient + floordiv(dim_terms::build(rest), dim_terms::build(d));

  Dim dividend = dim_terms::build(rest), by = dim_terms::build(d);
  if (constant) {
    auto lo = lower_bound(dividend), hi = upper_bound(dividend);
    if (lo && hi && floor_quotient(*lo, d.coefficient) == floor_quotient(*hi, d.coefficient)) {
      return quotient + Dim(floor_quotient(*lo, d.coefficient));
    }
  }
  if (const DimNode* atom = sole_atom(rest)) {
    if (atom->kind == DimKind::kMod && arg(*atom, 1) == by) return quotient;
    if (constant && atom->kind == DimKind::kFloorDiv && arg(*atom, 1).is_const()) {
      int64_t both;
      if (!__builtin_mul_overflow(atom->args[1]->value, d.coefficient, &both)) {
        return quotient + floordiv(arg(*atom, 0), Dim(both));
      }
    }
  }
  return quotient + make_node(DimKind::kFloorDiv, {dividend, by});
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is_const(0)) zero_divisor("mod", a);
  if (b.is_const(1) || a.is_const(0) || a == b) return Dim(0);
  Terms divisor = dim_terms::of(b);
  if (divisor[0].coefficient < 0) {
    return Dim(0) -
           mod(dim_terms::build(negated(dim_terms::of(a))), dim_terms::build(negated(divisor)));
  }
  Terms rest = dim_terms::of(a);
  if (divisor.size() > 1) {
    if (dim_terms::divide_exactly(rest, divisor)) return Dim(0);
    return make_node(DimKind::kMod, {a, b});
  }
  Term d = divisor[0];
  bool constant = d.atoms.empty();
  take_multiples(&rest, d);
  if (constant) {
    // mod(x, k*d) within the sum counts as x.
    for (Term& t : rest) {
      t.coefficient = floor_remainder(t.coefficient, d.coefficient);
      if (t.atoms.size() != 1 || t.atoms[0]->kind != DimKind::kMod) continue;
      const DimNode& inner = *t.atoms[0];
      if (inner.args[1]->kind == DimKind::kConst && inner.args[1]->value % d.coefficient == 0) {
        Dim whole = dim_terms::build(rest);
        return mod(whole + Dim(t.coefficient) * (arg(inner, 0) - Dim(Ref<const DimNode>(&inner))),
                   b);
      }
    }
  }
  if (rest.empty()) return Dim(0);
  if (constant) {
    int64_t g = common_coefficient(rest, d.coefficient, true);
    if (g > 1) {
      // mod(g*x + c, g*y) = g * mod(x + floordiv(c, g), y) + mod(c, g)
      int64_t left = 0;
      for (Term& t : rest) {
        if (t.atoms.empty()) left = floor_remainder(t.coefficient, g);
        t.coefficient = floor_quotient(t.coefficient, g);
      }
      dim_terms::normalise(&rest);
      return Dim(g) * mod(dim_terms::build(rest), Dim(d.coefficient / g)) + Dim(left);
    }
    Dim r = dim_terms::build(rest);
    auto lo = lower_bound(r), hi = upper_bound(r);
    if (lo && hi && *lo >= 0 && *hi < d.coefficient) return r;
  }
  Dim r = dim_terms::build(rest);
  if (const DimNode* atom = sole_atom(rest); atom && atom->kind == DimKind::kMod) {
    if (arg(*atom, 1) == b) return r;
  }
  return make_node(DimKind::kMod, {r, b});
}

}  // namespace tenon
