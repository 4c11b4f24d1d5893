#include "graph/pass/bind_symbols.h"

#include <map>
#include <set>
#include <string>

#include "graph/ir/condition.h"
#include "graph/ir/infer_match_shape.h"
#include "graph/ir/renamed.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/fold_constants.h"
#include "graph/pass/simplify.h"

namespace tenon::graph {
namespace {

using Sizes = std::map<std::string, Dim, std::less<>>;

// Puts these sizes in place of their symbols; `sizes` must outlive it.
DimSubstitution substitution_of(const Sizes& sizes) {
  return [&sizes](std::string_view symbol) -> std::optional<Dim> {
    const auto found = sizes.find(symbol);
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  };
}

// Finds the symbols of a function that a match binds to sizes which its value is known to have.
class Finder {
 public:
  // Nothing if a function literal is in the way: its own symbols would need names of their own.
  Sizes find(const FunctionExpr& function) {
    for (const VarRef& param : function.params) bind(param->type);
    visit(*function.body);
    return has_literals_ ? Sizes() : std::move(sizes_);
  }

 private:
  void bind(const TypeRef& type) {
    SymbolSet symbols;
    collect_binding_symbols(type, &symbols);
    for (const std::string& symbol : symbols) bind(symbol);
  }
  // A name that stands for two sizes, in two blocks, stays.
  void bind(const std::string& symbol) {
    if (!in_scope_.insert(symbol).second) return;
    opened_.push_back(symbol);
    if (!bound_.insert(symbol).second) sizes_.erase(symbol);
  }

  void visit(const Block& block) {
    for (const auto& binding : block.bindings) {
      const ExprRef& value = binding->value;
      has_literals_ |= value.is<FunctionExpr>();
      const size_t outer = opened_.size();
      for (const VarRef& var : block_variables(value)) bind(var->type);
      for_each_block(value, [&](const BlockRef& inner) {
        const size_t before = opened_.size();
        visit(*inner);
        close(before);
      });
      close(outer);
      if (const auto* match = value.as<MatchShape>()) visit(*match);
    }
  }
  void close(size_t count) {
    for (; opened_.size() > count; opened_.pop_back()) in_scope_.erase(opened_.back());
  }

  void visit(const MatchShape& match) {
    const std::optional<Array<Dim>> known = known_sizes(match);
    for (size_t i = 0; i < match.dims.size(); ++i) {
      const Dim& stated = match.dims[i];
      if (stated.kind() != DimKind::kSymbol) continue;
      const std::string symbol = stated.node().name.str();
      const bool is_new = !bound_.contains(symbol);
      bind(symbol);
      if (!is_new || !known || i >= known->size()) continue;
      // The match fails for a negative number, when it runs.
      if (const Dim size = tenon::substitute((*known)[i], substitution_of(sizes_));
          size.is_const() && may_be_size(size)) {
        sizes_.emplace(symbol, size);
      }
    }
  }

  Sizes sizes_;
  std::set<std::string> bound_;  // anywhere so far
  std::set<std::string> in_scope_;
  std::vector<std::string> opened_;  // those in scope, in their order
  bool has_literals_ = false;
};

// The function with the sizes that are known; null if there are none, if it would fail for certain,
// or if a size can't be expressed: that is to be an error only when it runs.
FunctionRef with_known_sizes(const FunctionExpr& function) try {
  const Sizes sizes = Finder().find(function);
  if (sizes.empty()) return nullptr;
  auto now = make<FunctionExpr>(function);
  now->body = renamed_body(function, {function.params.begin(), function.params.end()},
                           substitution_of(sizes), {});
  return may_hold(*now->body) ? FunctionRef(now) : nullptr;
} catch (const SizeError&) {
  return nullptr;
}

// The same for each function; null if none changes.
Module bind_once(const Module& module) {
  Map<String, FunctionRef> functions;
  bool any = false;
  for (const auto& [name, function] : module->functions) {
    const FunctionRef now = with_known_sizes(*function);
    any |= now != nullptr;
    functions.set(name, now ? now : function);
  }
  return any ? with_functions(module, std::move(functions)) : nullptr;
}

// The function with what is known of its result's sizes in its type.
FunctionRef with_known_result(const FunctionRef& function, const Variances& variances) {
  SymbolSet bound;
  for (const VarRef& param : function->params) collect_binding_symbols(param->type, &bound);
  const TypeRef known = erase_symbols(type_of(function->body->result),
                                      [&](std::string_view name) { return bound.contains(name); });
  if (!function->is_exported() || !is_subtype(known, function->result_type, variances))
    return function;
  auto now = make<FunctionExpr>(*function);
  now->result_type = known;
  return now;
}

}  // namespace

Module bind_symbols(const Module& module, PassContext& cx) {
  // A round for each size that folding finds only after the one before; Swin takes 5. What is left
  // after so many stays symbolic, so that the time is in proportion to the module's size.
  constexpr int kMostRounds = 16;
  Module now = module;
  for (int round = 0; round < kMostRounds; ++round) {
    const Module bound = bind_once(now);
    if (!bound) break;
    now = fold_constants(simplify(bound, cx), cx);
  }
  if (now == module) return module;
  const Variances variances(now->adts);
  Map<String, FunctionRef> functions;
  for (const auto& [name, function] : now->functions) {
    functions.set(name, with_known_result(function, variances));
  }
  return with_functions(now, std::move(functions));
}

}  // namespace tenon::graph
