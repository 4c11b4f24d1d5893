// Evaluating, rebuilding and searching Dims.
#include <algorithm>

#include "loop/dim_terms.h"
#include "loop/symbol_set.h"
#include "support/error.h"
#include "support/rounding.h"
#include "support/text.h"

namespace tenon {

using dim_terms::Terms;

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

constexpr DimFunction kFunctions[] = {{DimKind::kFloorDiv, "floordiv", floordiv},
                                      {DimKind::kMod, "mod", mod},
                                      {DimKind::kMin, "min", min},
                                      {DimKind::kMax, "max", max},
                                      {DimKind::kBcast, "bcast", bcast}};

// A node of `kind` over new arguments.
Dim rebuild(DimKind kind, const std::vector<Dim>& args) {
  const DimFunction* function = find_dim_function(kind);
  Dim acc = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    acc = function                ? function->apply(acc, args[i])
          : kind == DimKind::kAdd ? acc + args[i]
                                  : acc * args[i];
  }
  return acc;
}

// Of a sum: its terms are in order, without two of one monomial, and none is 0.
bool is_canonical_sum(const DimNode& n) {
  Terms terms, sorted;
  for (const auto& arg : n.args) {
    if (arg->kind == DimKind::kAdd) return false;
    dim_terms::append(*arg, 1, &terms);
  }
  sorted = terms;
  dim_terms::normalise(&sorted);
  return std::equal(terms.begin(), terms.end(), sorted.begin(), sorted.end(),
                    [](const dim_terms::Term& a, const dim_terms::Term& b) {
                      return a.coefficient == b.coefficient &&
                             dim_terms::compare(a.atoms, b.atoms) == 0;
                    });
}

// Of a product: at most one number, first, that is neither 0 nor 1, and atoms in order.
bool is_canonical_product(const DimNode& n) {
  for (size_t i = 0; i < n.args.size(); ++i) {
    const DimNode& factor = *n.args[i];
    if (factor.kind == DimKind::kAdd || factor.kind == DimKind::kMul) return false;
    if (factor.kind == DimKind::kConst && (i > 0 || factor.value == 0 || factor.value == 1)) {
      return false;
    }
    if (i > 0 && n.args[i - 1]->kind != DimKind::kConst &&
        dim_terms::compare(*n.args[i - 1], factor) > 0) {
      return false;
    }
  }
  return true;
}

// More arguments of one function are not read: proofs compare them in pairs.
constexpr size_t kMaxReadArguments = 64;

bool is_canonical_call(const DimNode& n) {
  if (!find_dim_function(n.kind) || n.args.size() > kMaxReadArguments) return false;
  std::vector<Dim> args;
  for (const auto& arg : n.args) args.emplace_back(arg);
  const Dim made = rebuild(n.kind, args);
  return dim_terms::compare(made.node(), n) == 0;
}

bool is_canonical(const DimNode& n) {
  if (n.kind == DimKind::kConst) return n.name.empty() && n.args.empty();
  if (n.value != 0) return false;
  if (n.kind == DimKind::kSymbol) return !n.name.empty() && n.args.empty();
  const bool two = n.kind == DimKind::kFloorDiv || n.kind == DimKind::kMod;
  if (!n.name.empty() || n.args.size() < 2 || (two && n.args.size() > 2)) return false;
  if (n.kind == DimKind::kAdd) return is_canonical_sum(n);
  if (n.kind == DimKind::kMul) return is_canonical_product(n);
  return is_canonical_call(n);
}

}  // namespace

void dim_terms::complete_node(DimNode* node) {
  // Shared nodes could make a tree of any size, which comparing walks.
  if (node_count(Dim(Ref<const DimNode>(node)), kMaxTerms + 1) > kMaxTerms) {
    throw SizeError(Error(ErrorKind::Usage, "a size expression is too large")
                        .expected(cat("at most ", kMaxTerms, " parts")));
  }
  if (printable(node->name.view()) != node->name.view()) {
    throw Error(ErrorKind::Usage, "the name of a size has control characters")
        .found(quoted(node->name.view()));
  }
  if (!is_canonical(*node)) {
    throw Error(ErrorKind::Usage, "a size expression is not in canonical form")
        .found(cat("kind ", static_cast<int>(node->kind), " with ",
                   counted(node->args.size(), "argument")))
        .expected("a node as arithmetic on sizes makes it");
  }
  const std::vector<Dim> args(node->args.begin(), node->args.end());
  const Dim made = make_node(node->kind, args, node->value, node->name.view());
  node->hash = made.node().hash;
  node->depth = made.node().depth;
}

std::span<const DimFunction> dim_functions() {
  return kFunctions;
}

const DimFunction* find_dim_function(DimKind kind) {
  for (const DimFunction& f : kFunctions) {
    if (f.kind == kind) return &f;
  }
  return nullptr;
}

const DimFunction* find_dim_function(std::string_view name) {
  for (const DimFunction& f : kFunctions) {
    if (f.name == name) return &f;
  }
  return nullptr;
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

bool has_small_coefficients(const Dim& d) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (d.is_const()) return true;
  std::vector<const DimNode*> open{&d.node()};
  while (!open.empty()) {
    const DimNode& n = *open.back();
    open.pop_back();
    if (n.kind == DimKind::kConst && (n.value > kMost || n.value < -kMost)) return false;
    for (const Ref<const DimNode>& arg : n.args) open.push_back(arg.get());
  }
  return true;
}

void collect_symbols(const Dim& d, SymbolSet* symbols) {
  const DimNode& n = d.node();
  if (n.kind == DimKind::kSymbol) symbols->add(n.name.view());
  for (const Ref<const DimNode>& a : n.args) collect_symbols(Dim(a), symbols);
}

}  // namespace tenon
