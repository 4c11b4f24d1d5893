#include "loop/dim.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "loop/dim_terms.h"
#include "object/reflect.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon {

using dim_terms::floor_quotient;

namespace {

constexpr uint32_t kMaxDepth = 200;
constexpr size_t kMaxTerms = 4096;

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15 + (h << 12) + (h >> 4);
  return h * 0xff51afd7ed558ccd;
}

uint64_t hash_text(std::string_view s) {
  uint64_t h = 0xcbf29ce484222325;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

[[noreturn]] void overflow(const char* what) {
  throw Error(ErrorKind::Usage, cat("a size overflows 64 bits in ", what))
      .expected("sizes below 2^63");
}
[[noreturn]] void zero_divisor(const char* what, const Dim& a) {
  throw Error(ErrorKind::Usage, cat("a size is divided by zero: ", what, "(", to_text(a), ", 0)"));
}

int64_t floor_remainder(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

Dim make_node(DimKind kind, const std::vector<Dim>& args, int64_t value = 0,
              std::string_view name = {}) {
  auto node = make<DimNode>();
  node->kind = kind;
  node->value = value;
  uint64_t h = mix(static_cast<uint64_t>(kind) + 1, static_cast<uint64_t>(value));
  if (kind == DimKind::kSymbol) {
    node->name = String(name);
    h = mix(h, hash_text(name));
  }
  if (args.size() > kMaxTerms) {
    throw Error(ErrorKind::Usage, cat("a size expression has ", args.size(), " terms"))
        .expected(cat("at most ", kMaxTerms));
  }
  uint32_t depth = 0;
  for (const Dim& a : args) {
    h = mix(h, hash(a));
    depth = std::max(depth, a.node().depth);
  }
  node->args.reserve(args.size());
  for (const Dim& a : args) node->args.push_back(Ref<const DimNode>(&a.node()));
  node->depth = depth + 1;
  node->hash = h ? h : 1;
  if (node->depth > kMaxDepth) {
    throw Error(ErrorKind::Usage, cat("a size expression is nested ", node->depth, " levels deep"))
        .expected(cat("at most ", kMaxDepth));
  }
  return Dim(Ref<const DimNode>(std::move(node)));
}

Dim arg(const DimNode& n, size_t i) {
  return Dim(n.args[i]);
}

}  // namespace

const TypeInfo& DimNode::type_info() {
  static const Field fields[] = {field("kind", &DimNode::kind),
                                 field("value", &DimNode::value),
                                 field("name", &DimNode::name),
                                 field("args", &DimNode::args),
                                 field("hash", &DimNode::hash, kIgnored | kHidden),
                                 field("depth", &DimNode::depth, kIgnored | kHidden)};
  static const TypeInfo info = type_of<DimNode>("loop.Dim", fields);
  return info;
}

namespace dim_terms {

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
    throw Error(ErrorKind::Usage, cat("a size expression has ", a.size() * b.size(), " terms"))
        .expected(cat("at most ", kMaxTerms));
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
    if (!q) return std::nullopt;
    Terms product = multiply({Term{-q->coefficient, q->atoms}}, b);
    a.insert(a.end(), product.begin(), product.end());
    normalise(&a);
    quotient.push_back(std::move(*q));
  }
  normalise(&quotient);
  return quotient;
}

}  // namespace dim_terms

using dim_terms::Term;
using dim_terms::Terms;

Dim::Dim(int64_t value) {
  constexpr int64_t kFirst = -16, kLast = 256;
  static const std::vector<Dim>& cached = *[] {
    auto* all = new std::vector<Dim>();  // for the whole process: Dims may outlive static objects
    for (int64_t v = kFirst; v <= kLast; ++v) all->push_back(make_node(DimKind::kConst, {}, v));
    return all;
  }();
  *this = value >= kFirst && value <= kLast ? cached[static_cast<size_t>(value - kFirst)]
                                            : make_node(DimKind::kConst, {}, value);
}

Dim Dim::symbol(std::string_view name) {
  return make_node(DimKind::kSymbol, {}, 0, name);
}

std::optional<int64_t> Dim::as_const() const {
  if (!is_const()) return std::nullopt;
  return node().value;
}

bool Dim::operator==(const Dim& other) const {
  if (object() == other.object()) return true;
  if (node().hash && other.node().hash && node().hash != other.node().hash) return false;
  return dim_terms::compare(node(), other.node()) == 0;
}

uint64_t hash(const Dim& d) {
  const DimNode& n = d.node();
  if (n.hash) return n.hash;
  uint64_t h = mix(static_cast<uint64_t>(n.kind) + 1, static_cast<uint64_t>(n.value));
  if (n.kind == DimKind::kSymbol) h = mix(h, hash_text(n.name.view()));
  for (const Ref<const DimNode>& a : n.args) h = mix(h, hash(Dim(a)));
  return h ? h : 1;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_const(0)) return b;
  if (b.is_const(0)) return a;
  Terms terms = dim_terms::of(a);
  dim_terms::append(b.node(), 1, &terms);
  dim_terms::normalise(&terms);
  return dim_terms::build(terms);
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b.is_const(0)) return a;
  Terms terms = dim_terms::of(a);
  dim_terms::append(b.node(), -1, &terms);
  dim_terms::normalise(&terms);
  return dim_terms::build(terms);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const(1)) return b;
  if (b.is_const(1)) return a;
  if (a.is_const(0) || b.is_const(0)) return Dim(0);
  return dim_terms::build(dim_terms::multiply(dim_terms::of(a), dim_terms::of(b)));
}

namespace {

Terms negated(Terms t) {
  for (Term& x : t) {
    if (__builtin_sub_overflow(int64_t{0}, x.coefficient, &x.coefficient)) overflow("a negation");
  }
  return t;
}

// Divides `rest` and `divisor` by the atoms that all their terms share. True if there were any.
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

// The greatest divisor of all coefficients; the constant term's is left out if `skip_constant`.
int64_t common_coefficient(const Terms& terms, int64_t g, bool skip_constant) {
  for (const Term& t : terms) {
    if (skip_constant && t.atoms.empty()) continue;
    g = std::gcd(g, t.coefficient);
  }
  return g;
}

// Splits into terms that the divisor divides (returned, divided) and the others (left in `terms`);
// a constant leaves its remainder.
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

// The atom if the sum is a single one with coefficient 1.
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
    // mod(x, k*d) inside counts as x.
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

namespace {

void flatten(DimKind kind, const Dim& d, std::vector<Dim>* out) {
  if (d.kind() == kind) {
    for (const Ref<const DimNode>& a : d.node().args) out->push_back(Dim(a));
  } else {
    out->push_back(d);
  }
}

void sort_unique(std::vector<Dim>* args) {
  std::sort(args->begin(), args->end(),
            [](const Dim& a, const Dim& b) { return dim_terms::compare(a.node(), b.node()) < 0; });
  args->erase(std::unique(args->begin(), args->end()), args->end());
}

// The least or greatest of the arguments: drops each that another one provably covers.
Dim extreme(DimKind kind, const Dim& a, const Dim& b) {
  if (a == b) return a;
  auto covers = [&](const Dim& x, const Dim& y) {
    return kind == DimKind::kMax ? proves_less_equal(y, x) : proves_less_equal(x, y);
  };
  std::vector<Dim> args, kept;
  flatten(kind, a, &args);
  flatten(kind, b, &args);
  sort_unique(&args);
  for (size_t i = 0; i < args.size(); ++i) {
    bool covered = false;
    for (const Dim& k : kept) covered = covered || covers(k, args[i]);
    for (size_t j = i + 1; j < args.size() && !covered; ++j) covered = covers(args[j], args[i]);
    if (!covered) kept.push_back(args[i]);
  }
  // Two that cover each other (equal, not seen to be) must not both go.
  if (kept.empty()) return args[0];
  return kept.size() == 1 ? kept[0] : make_node(kind, kept);
}

}  // namespace

Dim min(const Dim& a, const Dim& b) {
  return extreme(DimKind::kMin, a, b);
}
Dim max(const Dim& a, const Dim& b) {
  return extreme(DimKind::kMax, a, b);
}

Dim bcast(const Dim& a, const Dim& b) {
  if (a == b || b.is_const(1)) return a;
  if (a.is_const(1)) return b;
  std::vector<Dim> args;
  flatten(DimKind::kBcast, a, &args);
  flatten(DimKind::kBcast, b, &args);
  sort_unique(&args);
  std::optional<int64_t> size;  // all others are this or 1
  for (const Dim& d : args) {
    if (!d.is_const() || d.is_const(1)) continue;
    if (size && *size != d.node().value) {
      throw Error(ErrorKind::Usage,
                  cat("sizes ", *size, " and ", d.node().value, " do not broadcast"))
          .expected("equal sizes, or one of them 1");
    }
    size = d.node().value;
  }
  if (size) return Dim(*size);
  for (const Dim& d : args) {
    if (auto lo = lower_bound(d); lo && *lo >= 2) return d;
  }
  std::erase_if(args, [](const Dim& d) { return d.is_const(1); });
  // Of sizes that prove equal the shortest is kept.
  std::vector<Dim> kept;
  for (const Dim& d : args) {
    auto same =
        std::find_if(kept.begin(), kept.end(), [&](const Dim& k) { return proves_equal(k, d); });
    if (same == kept.end()) {
      kept.push_back(d);
    } else if (dim_terms::node_count(d, 1000) < dim_terms::node_count(*same, 1000)) {
      *same = d;
    }
  }
  sort_unique(&kept);
  args = kept;
  return args.size() == 1 ? args[0] : make_node(DimKind::kBcast, args);
}

Dim ceildiv(const Dim& a, const Dim& b) {
  return floordiv(a + b - Dim(1), b);
}

Dim product(const std::vector<Dim>& dims) {
  Dim p(1);
  for (const Dim& d : dims) p = p * d;
  return p;
}

namespace {

std::optional<int64_t> evaluate_node(const DimNode& n, const DimEnv& env) {
  if (n.kind == DimKind::kConst) return n.value;
  if (n.kind == DimKind::kSymbol) return env(n.name.view());
  std::optional<int64_t> acc;
  for (const Ref<const DimNode>& a : n.args) {
    std::optional<int64_t> v = evaluate_node(*a, env);
    if (!v) return std::nullopt;
    if (!acc) {
      acc = v;
      continue;
    }
    int64_t r = 0;
    switch (n.kind) {
      case DimKind::kAdd:
        if (__builtin_add_overflow(*acc, *v, &r)) return std::nullopt;
        break;
      case DimKind::kMul:
        if (__builtin_mul_overflow(*acc, *v, &r)) return std::nullopt;
        break;
      case DimKind::kFloorDiv:
        if (*v == 0 || (*v == -1 && *acc == INT64_MIN)) return std::nullopt;
        r = floor_quotient(*acc, *v);
        break;
      case DimKind::kMod:
        if (*v == 0) return std::nullopt;
        r = *v == -1 ? 0 : floor_remainder(*acc, *v);
        break;
      case DimKind::kMin:
        r = std::min(*acc, *v);
        break;
      case DimKind::kMax:
        r = std::max(*acc, *v);
        break;
      case DimKind::kBcast:
        if (*acc != *v && *acc != 1 && *v != 1) return std::nullopt;
        r = *acc == 1 ? *v : *acc;
        break;
      case DimKind::kConst:
      case DimKind::kSymbol:
        break;
    }
    acc = r;
  }
  return acc;
}

// Applies the node's operator to new arguments.
Dim rebuild(DimKind kind, const std::vector<Dim>& args) {
  Dim acc = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    switch (kind) {
      case DimKind::kAdd:
        acc = acc + args[i];
        break;
      case DimKind::kMul:
        acc = acc * args[i];
        break;
      case DimKind::kFloorDiv:
        acc = floordiv(acc, args[i]);
        break;
      case DimKind::kMod:
        acc = mod(acc, args[i]);
        break;
      case DimKind::kMin:
        acc = min(acc, args[i]);
        break;
      case DimKind::kMax:
        acc = max(acc, args[i]);
        break;
      case DimKind::kBcast:
        acc = bcast(acc, args[i]);
        break;
      case DimKind::kConst:
      case DimKind::kSymbol:
        break;
    }
  }
  return acc;
}

Dim canonical_node(const DimNode& n, uint32_t level) {
  if (level > kMaxDepth) throw Error(ErrorKind::Damaged, "a size expression is nested too deep");
  if (n.kind == DimKind::kConst) return Dim(n.value);
  if (n.kind == DimKind::kSymbol) {
    if (n.name.empty()) throw Error(ErrorKind::Damaged, "a symbol of a size has no name");
    return Dim::symbol(n.name.view());
  }
  bool two = n.kind == DimKind::kFloorDiv || n.kind == DimKind::kMod;
  if (n.kind > DimKind::kBcast || n.args.size() < 2 || (two && n.args.size() != 2)) {
    throw Error(ErrorKind::Damaged,
                cat("a size expression of kind ", n.kind, " has ", n.args.size(), " arguments"));
  }
  std::vector<Dim> args;
  for (const Ref<const DimNode>& a : n.args) {
    if (!a) throw Error(ErrorKind::Damaged, "a size expression has an empty argument");
    args.push_back(canonical_node(*a, level + 1));
  }
  return rebuild(n.kind, args);
}

}  // namespace

Dim canonical(const Ref<const DimNode>& node) {
  if (!node) throw Error(ErrorKind::Damaged, "a size expression is empty");
  return canonical_node(*node, 1);
}

std::optional<int64_t> evaluate(const Dim& d, const DimEnv& env) {
  return evaluate_node(d.node(), env);
}

Dim substitute(const Dim& d, const DimSubstitution& map) {
  const DimNode& n = d.node();
  if (n.kind == DimKind::kConst) return d;
  if (n.kind == DimKind::kSymbol) return map(n.name.view()).value_or(d);
  std::vector<Dim> args;
  bool changed = false;
  for (const Ref<const DimNode>& a : n.args) {
    args.push_back(substitute(Dim(a), map));
    changed = changed || args.back().object() != a.get();
  }
  return changed ? rebuild(n.kind, args) : d;
}

void collect_symbols(const Dim& d, std::vector<std::string>* names) {
  const DimNode& n = d.node();
  if (n.kind == DimKind::kSymbol) {
    if (std::find(names->begin(), names->end(), n.name.view()) == names->end()) {
      names->push_back(n.name.str());
    }
  }
  for (const Ref<const DimNode>& a : n.args) collect_symbols(Dim(a), names);
}

namespace {

void print(const DimNode& n, std::string* out) {
  switch (n.kind) {
    case DimKind::kConst:
      append_text(*out, static_cast<long long>(n.value));
      return;
    case DimKind::kSymbol:
      append_text(*out, n.name.view());
      return;
    case DimKind::kAdd:
      for (size_t i = 0; i < n.args.size(); ++i) {
        std::string term;
        print(*n.args[i], &term);
        if (i == 0) {
          *out += term;
        } else if (term[0] == '-') {
          *out += " - " + term.substr(1);
        } else {
          *out += " + " + term;
        }
      }
      return;
    case DimKind::kMul: {
      bool first = true;
      for (const Ref<const DimNode>& f : n.args) {
        if (first && f->kind == DimKind::kConst && f->value == -1) {
          *out += "-";
          continue;
        }
        if (!first) *out += "*";
        first = false;
        print(*f, out);
      }
      return;
    }
    default:
      break;
  }
  switch (n.kind) {
    case DimKind::kFloorDiv:
      *out += "floordiv(";
      break;
    case DimKind::kMod:
      *out += "mod(";
      break;
    case DimKind::kMin:
      *out += "min(";
      break;
    case DimKind::kMax:
      *out += "max(";
      break;
    default:
      *out += "bcast(";
      break;
  }
  for (size_t i = 0; i < n.args.size(); ++i) {
    if (i) *out += ", ";
    print(*n.args[i], out);
  }
  *out += ")";
}

}  // namespace

std::string to_text(const Dim& d) {
  std::string out;
  print(d.node(), &out);
  return out;
}

}  // namespace tenon
