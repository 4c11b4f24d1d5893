// Bounds by interval arithmetic and proofs of signs. Symbols are >= 0.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "loop/dim.h"
#include "loop/dim_terms.h"
#include "loop/symbol_set.h"
#include "support/error.h"
#include "support/rounding.h"

namespace tenon {

namespace {

using dim_terms::Term;
using dim_terms::Terms;

// nullopt means unbounded on that side.
struct Interval {
  std::optional<int64_t> lo, hi;
};

std::optional<int64_t> add(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t r;
  if (!a || !b || __builtin_add_overflow(*a, *b, &r)) return std::nullopt;
  return r;
}
std::optional<int64_t> times(std::optional<int64_t> a, std::optional<int64_t> b) {
  if ((a && *a == 0) || (b && *b == 0)) return 0;
  int64_t r;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &r)) return std::nullopt;
  return r;
}

Interval bounds(const DimNode& n);

Interval multiply(const Interval& a, const Interval& b) {
  auto nonnegative = [](const Interval& i) { return i.lo && *i.lo >= 0; };
  auto nonpositive = [](const Interval& i) { return i.hi && *i.hi <= 0; };
  if (nonnegative(a) && nonnegative(b)) return {times(a.lo, b.lo), times(a.hi, b.hi)};
  if (nonpositive(a) && nonnegative(b)) return {times(a.lo, b.hi), times(a.hi, b.lo)};
  if (nonnegative(a) && nonpositive(b)) return {times(a.hi, b.lo), times(a.lo, b.hi)};
  if (!a.lo || !a.hi || !b.lo || !b.hi) return {};
  Interval r;
  for (auto x : {a.lo, a.hi}) {
    for (auto y : {b.lo, b.hi}) {
      auto p = times(x, y);
      if (!p) return {};
      r.lo = r.lo ? std::min(*r.lo, *p) : *p;
      r.hi = r.hi ? std::max(*r.hi, *p) : *p;
    }
  }
  return r;
}

Interval quotient(const Interval& a, const Interval& b) {
  if (!b.lo || *b.lo < 0) return {};
  // The divisor isn't 0, even if its interval contains 0.
  int64_t least = std::max<int64_t>(*b.lo, 1);
  Interval r;
  if (a.lo) {
    if (*a.lo >= 0) {
      r.lo = b.hi ? floor_quotient(*a.lo, std::max<int64_t>(*b.hi, 1)) : 0;
    } else {
      r.lo = floor_quotient(*a.lo, least);
    }
  }
  if (a.hi) {
    if (*a.hi >= 0) {
      r.hi = floor_quotient(*a.hi, least);
    } else {
      r.hi = b.hi ? floor_quotient(*a.hi, std::max<int64_t>(*b.hi, 1)) : -1;
    }
  }
  return r;
}

Interval remainder(const Interval& a, const Interval& b) {
  if (!b.lo || *b.lo < 0) return {};
  Interval r{0, std::nullopt};
  if (b.hi) r.hi = std::max<int64_t>(*b.hi - 1, 0);
  if (a.lo && *a.lo >= 0 && a.hi) r.hi = r.hi ? std::min(*r.hi, *a.hi) : *a.hi;
  return r;
}

// The state of one query. Sizes share parts, so each part is bounded only once; and since the
// search for a proof branches, it ends after a fixed number of steps, deterministically.
struct Question {
  static constexpr int kSteps = 2000;

  std::unordered_map<const DimNode*, std::pair<Ref<const DimNode>, Interval>>
      known;  // keeps the keys alive
  int steps = 0;

  static Question*& current() {
    thread_local Question* question = nullptr;
    return question;
  }
  Question() : outer(current()) { current() = this; }
  ~Question() { current() = outer; }
  Question(const Question&) = delete;

  Question* outer;
};

Interval compute_bounds(const DimNode& n);

Interval bounds(const DimNode& n) {
  if (n.kind == DimKind::kConst) return {n.value, n.value};
  if (n.kind == DimKind::kSymbol) return {0, std::nullopt};
  auto& known = Question::current()->known;
  if (auto it = known.find(&n); it != known.end()) return it->second.second;
  const Interval found = compute_bounds(n);
  known.emplace(&n, std::pair(Ref<const DimNode>(&n), found));
  return found;
}

Interval compute_bounds(const DimNode& n) {
  Interval r = bounds(*n.args[0]);
  for (size_t i = 1; i < n.args.size(); ++i) {
    Interval b = bounds(*n.args[i]);
    switch (n.kind) {
      case DimKind::kAdd:
        r = {add(r.lo, b.lo), add(r.hi, b.hi)};
        break;
      case DimKind::kMul:
        r = multiply(r, b);
        break;
      case DimKind::kFloorDiv:
        r = quotient(r, b);
        break;
      case DimKind::kMod:
        r = remainder(r, b);
        break;
      case DimKind::kMin:
        r.lo = r.lo && b.lo ? std::optional(std::min(*r.lo, *b.lo)) : std::nullopt;
        r.hi = r.hi && b.hi ? std::min(*r.hi, *b.hi) : (r.hi ? r.hi : b.hi);
        break;
      case DimKind::kMax:
        r.hi = r.hi && b.hi ? std::optional(std::max(*r.hi, *b.hi)) : std::nullopt;
        r.lo = r.lo && b.lo ? std::max(*r.lo, *b.lo) : (r.lo ? r.lo : b.lo);
        break;
      case DimKind::kBcast:  // the value is one of the arguments'
        r.lo = r.lo && b.lo ? std::optional(std::min(*r.lo, *b.lo)) : std::nullopt;
        r.hi = r.hi && b.hi ? std::optional(std::max(*r.hi, *b.hi)) : std::nullopt;
        break;
      default:
        break;
    }
  }
  return r;
}

bool nonnegative(const Dim& d, int depth);

// Replaces an atom of a term by something that can only make the sum smaller, and tries again.
// floordiv(x, c) lies between (x - c + 1) / c and x / c: the sum is multiplied by c first.
bool relax(const Dim& d, const Terms& terms, int depth) {
  for (const Term& t : terms) {
    for (size_t i = 0; i < t.atoms.size(); ++i) {
      const DimNode& atom = *t.atoms[i];
      if (!find_dim_function(atom.kind)) continue;
      Term others{t.coefficient, {}};
      for (size_t j = 0; j < t.atoms.size(); ++j) {
        if (j != i) others.atoms.push_back(t.atoms[j]);
      }
      Dim factor = dim_terms::build(others);
      Interval sign = bounds(factor.node());
      bool positive = sign.lo && *sign.lo >= 0, negative = sign.hi && *sign.hi <= 0;
      Dim rest = d - dim_terms::build(t);
      auto with = [&](const Dim& value) { return nonnegative(rest + factor * value, depth - 1); };
      auto some = [&] {
        for (const auto& a : atom.args) {
          if (with(Dim(a))) return true;
        }
        return false;
      };
      auto all = [&] {
        for (const auto& a : atom.args) {
          if (!with(Dim(a))) return false;
        }
        return true;
      };
      switch (atom.kind) {
        case DimKind::kMin:
          if (negative ? some() : all()) return true;
          break;
        case DimKind::kMax:
          if (positive ? some() : all()) return true;
          break;
        case DimKind::kBcast:
          if (all()) return true;
          break;
        case DimKind::kFloorDiv: {
          Dim x(atom.args[0]), c(atom.args[1]);
          auto low = bounds(c.node()).lo;
          if (!low || *low < 0) break;
          if (negative && nonnegative(rest * c + factor * x, depth - 1)) return true;
          if (positive && nonnegative(rest * c + factor * (x - c + Dim(1)), depth - 1)) return true;
          break;
        }
        case DimKind::kMod: {
          Dim x(atom.args[0]), c(atom.args[1]);
          auto low = bounds(c.node()).lo;
          if (!low || *low < 0) break;
          if (negative && with(c - Dim(1))) return true;
          if (negative && bounds(x.node()).lo.value_or(-1) >= 0 && with(x)) return true;
          if (positive && with(Dim(0))) return true;
          break;
        }
        default:
          break;
      }
    }
  }
  return false;
}

bool nonnegative(const Dim& d, int depth) {
  Interval i = bounds(d.node());
  if (i.lo && *i.lo >= 0) return true;
  if (i.hi && *i.hi < 0) return false;
  if (depth == 0 || ++Question::current()->steps > Question::kSteps) return false;
  Terms terms = dim_terms::of(d);
  if (terms.size() > 8) return false;
  return relax(d, terms, depth);
}

constexpr uint32_t kLargest = 120;  // the most nodes of an expression to try proofs on

bool is_large(const Dim& d) {
  return dim_terms::node_count(d, kLargest + 1) > kLargest;
}

// A symbol and its value at which two arguments of a min or max are equal.
struct Pivot {
  std::string symbol;
  int64_t value;
};
std::optional<Pivot> find_pivot(const DimNode& n) {
  if (n.kind == DimKind::kMin || n.kind == DimKind::kMax) {
    for (size_t i = 0; i < n.args.size(); ++i) {
      for (size_t j = i + 1; j < n.args.size(); ++j) {
        Dim d = Dim(n.args[i]) - Dim(n.args[j]);
        Terms terms = dim_terms::of(d);
        if (terms.empty() || terms.size() > 2 || terms[0].atoms.size() != 1) continue;
        if (terms[0].atoms[0]->kind != DimKind::kSymbol) continue;
        if (terms[0].coefficient != 1 && terms[0].coefficient != -1) continue;
        int64_t constant = 0;
        if (terms.size() == 2) {
          if (!terms[1].atoms.empty()) continue;
          constant = terms[1].coefficient;
          if (constant == INT64_MIN) continue;
        }
        return Pivot{terms[0].atoms[0]->name.str(), -constant * terms[0].coefficient};
      }
    }
  }
  for (const auto& a : n.args) {
    if (auto p = find_pivot(*a)) return p;
  }
  return std::nullopt;
}

// Whether `holds` is true of `d` on both sides of a pivot, with the symbol replaced by value + t
// and value - t.
bool by_cases(const Dim& d, int depth, const std::function<bool(const Dim&, int)>& holds) {
  if (depth == 0 || is_large(d)) return false;
  auto pivot = find_pivot(d.node());
  if (!pivot) return false;
  SymbolSet taken;
  collect_symbols(d, &taken);
  std::string other = pivot->symbol;
  do {
    other += "~";
  } while (taken.contains(other));
  const Dim t = Dim::symbol(other);
  auto with = [&](const Dim& value) {
    Dim side = substitute(d, [&](std::string_view s) {
      return s == pivot->symbol ? std::optional(value) : std::nullopt;
    });
    return holds(side, depth - 1);
  };
  // Symbols are not negative: with a negative value there is only one side.
  return with(Dim(std::max<int64_t>(pivot->value, 0)) + t) &&
         (pivot->value < 0 || with(Dim(pivot->value) - t));
}

bool is_zero(const Dim& d, int depth) {
  if (d.is_const()) return d.is_const(0);
  Interval i = bounds(d.node());
  if ((i.lo && *i.lo > 0) || (i.hi && *i.hi < 0)) return false;
  return by_cases(d, depth, is_zero);
}

bool nonnegative_by_cases(const Dim& d, int depth) {
  if (nonnegative(d, 2)) return true;
  return by_cases(d, depth, nonnegative_by_cases);
}

}  // namespace

std::optional<int64_t> lower_bound(const Dim& d) {
  Question question;
  return bounds(d.node()).lo;
}
std::optional<int64_t> upper_bound(const Dim& d) {
  Question question;
  return bounds(d.node()).hi;
}

bool proves_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_const() && b.is_const()) return false;
  if (is_large(a) || is_large(b)) return false;
  Question question;
  try {
    return is_zero(a - b, 2);
  } catch (const SizeError&) {
    return false;  // a bound overflowed: no proof
  }
}

bool proves_nonnegative(const Dim& d) {
  if (auto v = d.as_const()) return *v >= 0;
  if (is_large(d)) return false;
  Question question;
  try {
    return nonnegative(d, 3) || nonnegative_by_cases(d, 1);
  } catch (const SizeError&) {
    return false;
  }
}

bool may_be_size(const Dim& d) {
  return d.as_const().value_or(0) >= 0;
}

bool proves_less_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (auto x = a.as_const(), y = b.as_const(); x && y) return *x <= *y;
  if (is_large(a) || is_large(b)) return false;
  Question question;
  try {
    return proves_nonnegative(b - a);
  } catch (const SizeError&) {
    return false;
  }
}

bool proves_differ(const Dim& a, const Dim& b) {
  if (a == b) return false;
  if (a.is_const() && b.is_const()) return true;  // canonical: unequal constants
  if (is_large(a) || is_large(b)) return false;
  Question question;
  try {
    Dim d = a - b;
    if (d.is_const()) return !d.is_const(0);
    // c + g*(...) is never 0 if g does not divide c.
    int64_t g = 0, constant = 0;
    for (const Term& t : dim_terms::of(d)) {
      if (t.atoms.empty()) {
        constant = t.coefficient;
      } else {
        g = dim_terms::common_divisor(g, t.coefficient);
      }
    }
    if (g > 1 && constant % g != 0) return true;
    return nonnegative(d - Dim(1), 2) || nonnegative(Dim(-1) - d, 2);
  } catch (const SizeError&) {
    return false;
  }
}

}  // namespace tenon
