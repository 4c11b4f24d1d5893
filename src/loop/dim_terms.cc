#include "loop/dim_terms.h"

#include <algorithm>

#include "support/error.h"
#include "support/text.h"

namespace tenon::dim_terms {

void overflow(const char* what) {
  throw SizeError(Error(ErrorKind::Usage, cat("a size overflows 64 bits in ", what))
                      .expected("sizes below 2^63"));
}

void too_many_terms(size_t count) {
  throw SizeError(Error(ErrorKind::Usage, cat("a size expression has ", count, " terms"))
                      .expected(cat("at most ", kMaxTerms))
                      .help("state some of the sizes that are known only at run time"));
}

int compare(const DimNode& a, const DimNode& b) {
  if (&a == &b) return 0;
  auto rank = [](DimKind k) { return k == DimKind::kSymbol ? -1 : static_cast<int>(k); };
  if (a.kind != b.kind) return rank(a.kind) < rank(b.kind) ? -1 : 1;
  if (a.kind == DimKind::kConst) return a.value < b.value ? -1 : a.value > b.value;
  if (a.kind == DimKind::kSymbol) {
    int c = a.name.view().compare(b.name.view());
    return c < 0 ? -1 : c > 0;
  }
  size_t n = std::min(a.args.size(), b.args.size());
  for (size_t i = 0; i < n; ++i) {
    if (int c = compare(*a.args[i], *b.args[i])) return c;
  }
  return a.args.size() < b.args.size() ? -1 : a.args.size() > b.args.size();
}

uint32_t node_count(const Dim& d, uint32_t limit) {
  uint32_t n = 1;
  for (const auto& a : d.node().args) {
    if (n >= limit) break;
    n += node_count(Dim(a), limit - n);
  }
  return std::min(n, limit);
}

int compare(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (int c = compare(*a[i], *b[i])) return c;
  }
  return 0;
}

void append(const DimNode& n, int64_t scale, Terms* out) {
  auto one = [&](const DimNode& t) {
    Term term{scale, {}};
    auto times = [&](int64_t v) {
      if (__builtin_mul_overflow(term.coefficient, v, &term.coefficient)) overflow("a product");
    };
    if (t.kind == DimKind::kConst) {
      times(t.value);
    } else if (t.kind == DimKind::kMul) {
      for (const Ref<const DimNode>& f : t.args) {
        if (f->kind == DimKind::kConst) {
          times(f->value);
        } else {
          term.atoms.push_back(f.get());
        }
      }
    } else {
      term.atoms.push_back(&t);
    }
    out->push_back(std::move(term));
  };
  if (n.kind == DimKind::kAdd) {
    for (const Ref<const DimNode>& t : n.args) one(*t);
  } else {
    one(n);
  }
}

Terms of(const Dim& d) {
  Terms out;
  append(d.node(), 1, &out);
  if (out.size() == 1 && out[0].coefficient == 0) out.clear();
  return out;
}

void normalise(Terms* terms) {
  std::sort(terms->begin(), terms->end(),
            [](const Term& a, const Term& b) { return compare(a.atoms, b.atoms) < 0; });
  size_t n = 0;
  for (size_t i = 0; i < terms->size(); ++i) {
    Term& t = (*terms)[i];
    if (n > 0 && compare((*terms)[n - 1].atoms, t.atoms) == 0) {
      if (__builtin_add_overflow((*terms)[n - 1].coefficient, t.coefficient,
                                 &(*terms)[n - 1].coefficient)) {
        overflow("a sum");
      }
    } else {
      if (n > 0 && (*terms)[n - 1].coefficient == 0) --n;
      if (n != i) (*terms)[n] = std::move(t);
      ++n;
    }
  }
  if (n > 0 && (*terms)[n - 1].coefficient == 0) --n;
  terms->resize(n);
}

Dim build(const Term& t) {
  if (t.atoms.empty()) return Dim(t.coefficient);
  if (t.coefficient == 1 && t.atoms.size() == 1) return Dim(Ref<const DimNode>(t.atoms[0]));
  std::vector<Dim> factors;
  factors.reserve(t.atoms.size() + 1);
  if (t.coefficient != 1) factors.emplace_back(t.coefficient);
  for (const DimNode* a : t.atoms) factors.emplace_back(Ref<const DimNode>(a));
  return make_node(DimKind::kMul, factors);
}

Dim build(const Terms& terms) {
  if (terms.empty()) return Dim(0);
  if (terms.size() == 1) return build(terms[0]);
  std::vector<Dim> args;
  args.reserve(terms.size());
  for (const Term& t : terms) args.push_back(build(t));
  return make_node(DimKind::kAdd, args);
}

Terms multiply(const Terms& a, const Terms& b) {
  if (a.size() * b.size() > kMaxTerms) {
    too_many_terms(a.size() * b.size());
  }
  Terms out;
  out.reserve(a.size() * b.size());
  for (const Term& x : a) {
    for (const Term& y : b) {
      Term t;
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &t.coefficient)) {
        overflow("a product");
      }
      t.atoms.resize(x.atoms.size() + y.atoms.size());
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), t.atoms.begin(),
                 [](const DimNode* p, const DimNode* q) { return compare(*p, *q) < 0; });
      out.push_back(std::move(t));
    }
  }
  normalise(&out);
  return out;
}

std::optional<Term> divide(const Term& a, const Term& b) {
  if (b.coefficient == 0 || b.coefficient == -1) {
    if (b.coefficient == 0 || a.coefficient == INT64_MIN) return std::nullopt;
  }
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  Term q{a.coefficient / b.coefficient, {}};
  size_t j = 0;
  for (const DimNode* x : a.atoms) {
    if (j < b.atoms.size() && compare(*x, *b.atoms[j]) == 0) {
      ++j;
    } else {
      q.atoms.push_back(x);
    }
  }
  if (j != b.atoms.size()) return std::nullopt;
  return q;
}

// Long division by leading terms; the order of monomials is compatible with multiplication.
std::optional<Terms> divide_exactly(Terms a, const Terms& b) {
  if (b.empty()) return std::nullopt;
  Terms quotient;
  for (int step = 0; !a.empty(); ++step) {
    if (step == 64) return std::nullopt;
    std::optional<Term> q = divide(a[0], b[0]);
    if (!q || q->coefficient == INT64_MIN) return std::nullopt;
    Terms product = multiply({Term{-q->coefficient, q->atoms}}, b);
    a.insert(a.end(), product.begin(), product.end());
    normalise(&a);
    quotient.push_back(std::move(*q));
  }
  normalise(&quotient);
  return quotient;
}

}  // namespace tenon::dim_terms
