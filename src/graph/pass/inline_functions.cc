#include "graph/pass/inline_functions.h"

#include <algorithm>

#include "graph/ir/calls.h"
#include "graph/ir/condition.h"
#include "graph/ir/free_names.h"
#include "graph/ir/instantiate.h"
#include "graph/ir/renamed.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// In bindings, those of nested blocks included.
constexpr int64_t kSmall = 8, kMedium = 40, kLarge = 200, kLargeOnce = 2000;
// A function that computes with tensors is copied to at most so many places.
constexpr int64_t kMostCopies = 8;
// Of functions into each other.
constexpr int kDeepest = 100;
// What may be added to a module: as much as it has, or so much.
constexpr int64_t kLeastGrowth = 2000;

struct Facts {
  int64_t size = 0;
  size_t depth = 0;       // of nested blocks
  int64_t calls = 0;      // in the module
  bool is_value = false;  // there is a closure of it
  bool has_loop = false;
  bool has_tensors = false;  // an operator or kernel gives a tensor
  bool is_kept = false;      // it may not be inlined
};

void measure_block(const Block& block, size_t depth, Facts* facts) {
  facts->depth = std::max(facts->depth, depth);
  for (const auto& binding : block.bindings) {
    ++facts->size;
    const ExprRef& value = binding->value;
    facts->has_loop |= value.is<Loop>();
    facts->has_tensors |= value.is<Call>() && binding->var->type.is<TensorType>();
    facts->is_kept |= value.is<FunctionExpr>();
    for_each_block(value, [&](const BlockRef& inner) { measure_block(*inner, depth + 1, facts); });
  }
}

class Inliner : public Rewriter {
 public:
  Module inlined(const Module& module) {
    recursive_ = recursive_functions(module->functions);
    int64_t size = 0;
    for (const auto& [name, function] : module->functions) {
      Facts& facts = facts_[name];
      measure_block(*function->body, 1, &facts);
      facts.is_kept |=
          !function->may_be_inlined() || function->is_primitive() || recursive_.contains(name);
      size += facts.size;
      for_each_callee(*function->body, [&](const String& callee, const Call* call) {
        Facts& called = facts_[callee];
        ++called.calls;
        called.is_value |= call == nullptr;
      });
    }
    budget_ = std::max(size, kLeastGrowth);
    return run(module);
  }

 protected:
  void enter(const FunctionRef& function) override {
    caller_is_recursive_ = recursive_.contains(function->name);
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto* call = value.as<Call>();
    if (!call || call->kind != CalleeKind::kGlobal) return keep(var, value);
    const FunctionRef* callee = module()->functions.find(call->callee);
    if (!callee || !is_worth_it(**callee, *call)) return keep(var, value);
    const BlockRef body = instance(**callee, *call, var->type);
    if (!body) return keep(var, value);
    budget_ -= facts_.at(call->callee).size;
    copies_.push_back(body);
    ++depth_;
    Operand result = inline_block(body);
    --depth_;
    return result;
  }

 private:
  bool is_worth_it(const FunctionExpr& callee, const Call& call) {
    const Facts& facts = facts_.at(call.callee);
    const bool is_too_deep =
        depth_ == kDeepest || builder().open_blocks() + facts.depth >= size_t{kMaxNesting};
    if (facts.is_kept || facts.size > budget_ || is_too_deep) return false;
    if (facts.size <= kSmall && !facts.has_loop) return true;
    // A frame of a recursion stays small; beside tensors it doesn't count.
    if (caller_is_recursive_ && !facts.has_tensors) return false;
    const bool is_only = facts.calls == 1 && !facts.is_value;
    if (is_only) return facts.size <= (callee.is_exported() ? kLarge : kLargeOnce);
    const bool has_constants = std::ranges::any_of(call.args, [](const Operand& arg) {
      const auto* constant = arg.as<Constant>();
      return constant && Tensor::accepts(constant->value);
    });
    return facts.has_tensors && facts.calls <= kMostCopies &&
           facts.size <= (has_constants ? kLarge : kMedium);
  }

  // The body with the call's arguments; null if the caller doesn't know a symbol of the parameters
  // or can't prove that an argument has its parameter's sizes, or that a function takes the sizes
  // that its parameter's type says, or its result takes those that were stated, and if a condition
  // in it can't hold or a size can't be expressed: that is to be an error only when it runs.
  BlockRef instance(const FunctionExpr& callee, const Call& call, const TypeRef& stated) try {
    Matching known(callee.type_params, variances());
    SymbolSet bound;
    known.match_all(type_of(callee).as<FunctionType>()->params, types_of(call.args));
    for (const VarRef& param : callee.params) collect_binding_symbols(param->type, &bound);
    for (const std::string& symbol : bound) {
      if (!known.find(symbol)) return nullptr;
    }
    Map<String, TypeRef> types = known.type_args();
    for (size_t i = 0; i < callee.type_params.size(); ++i) {
      const String& name = callee.type_params[i];
      if (i < call.type_args.size()) types.set(name, call.type_args[i]);
      if (!types.contains(name)) return nullptr;
    }
    for (size_t i = 0; i < call.args.size(); ++i) {
      const TypeRef given = type_of(call.args[i]), taken = known.apply(callee.params[i]->type);
      if (!is_subtype(given, taken, variances()) || !may_be_known_as(taken, given, variances()))
        return nullptr;
    }
    std::map<std::string, Dim, std::less<>> fresh;  // of symbols that the body binds
    for (const std::string& symbol : free_names(callee).symbols) {
      if (!bound.contains(symbol)) fresh.emplace(symbol, builder().fresh_symbol(symbol));
    }
    const DimSubstitution sizes = [&](std::string_view symbol) -> std::optional<Dim> {
      if (const Dim* given = known.find(symbol)) return *given;
      const auto found = fresh.find(symbol);
      return found == fresh.end() ? std::nullopt : std::optional(found->second);
    };
    const BlockRef body = renamed_body(callee, call.args.to_vector(), sizes, types);
    if (!may_be_known_as(stated, type_of(body->result), variances())) return nullptr;
    return may_hold(*body) ? body : nullptr;
  } catch (const SizeError&) {
    return nullptr;
  }

  std::map<String, Facts> facts_;
  std::set<String> recursive_;
  int64_t budget_ = 0;
  int depth_ = 0;
  std::vector<BlockRef> copies_;  // whose variables the rewriter knows by their addresses
  bool caller_is_recursive_ = false;
};

}  // namespace

Module inline_functions(const Module& module, PassContext&) {
  return Inliner().inlined(module);
}

}  // namespace tenon::graph
