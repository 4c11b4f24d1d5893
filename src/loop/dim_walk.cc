// Evaluating, rebuilding and searching Dims.
#include <algorithm>

#include "loop/dim_terms.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon {

using dim_terms::floor_quotient;
using dim_terms::floor_remainder;

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
  if (level > dim_terms::kMaxDepth)
    throw Error(ErrorKind::Damaged, "a size expression is nested too deep");
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

}  // namespace tenon
