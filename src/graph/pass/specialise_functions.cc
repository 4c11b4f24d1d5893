#include "graph/pass/specialise_functions.h"

#include <deque>

#include "graph/ir/calls.h"
#include "graph/ir/instantiate.h"
#include "graph/ir/renamed.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// Bounds what is added to a module: copies, and bindings of each function that is copied.
constexpr size_t kMostCopies = 100;
constexpr int64_t kLargest = 200;

int64_t bindings_in(const Block& block) {
  int64_t count = 0;
  for (const auto& binding : block.bindings) {
    ++count;
    for_each_block(binding->value, [&](const BlockRef& inner) { count += bindings_in(*inner); });
  }
  return count;
}

bool has_symbols(const TypeRef& type) {
  SymbolSet symbols;
  collect_symbols(type, &symbols);
  return !symbols.empty();
}

bool has_symbols(const FunctionExpr& function) {
  return has_symbols(function.result_type) ||
         std::ranges::any_of(function.params, [](const VarRef& p) { return has_symbols(p->type); });
}

VarRef new_var(const VarRef& like, const TypeRef& type) {
  auto var = make<Var>(*like);
  var->type = type;
  return var;
}

class Specialiser : public Rewriter {
 public:
  Module specialised(const Module& module) {
    functions_ = module->functions;
    for (const auto& [name, function] : functions_) {
      const bool takes_function = std::ranges::any_of(
          function->params, [](const VarRef& param) { return param->type.is<FunctionType>(); });
      if (takes_function && !function->is_primitive() && bindings_in(*function->body) <= kLargest) {
        candidates_.insert(name);
      }
    }
    if (candidates_.empty()) return module;
    Map<String, FunctionRef> functions = run(module)->functions;
    while (!made_.empty()) {
      const FunctionRef next = made_.front();
      made_.pop_front();
      functions.set(next->name, run(next));
    }
    return with_functions(module, std::move(functions));
  }

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto* call = value.as<Call>();
    if (!call || call->kind != CalleeKind::kGlobal) return keep(var, value);
    Ref<const Call> now = share(call);
    while (const Ref<const Call> better = for_a_closure(*now, var->type)) now = better;
    return keep(var, now);
  }

 private:
  // The call of a copy for one of the closures among the arguments, whose value is known as
  // `result`; null if there is none.
  Ref<const Call> for_a_closure(const Call& call, const TypeRef& result) {
    if (!candidates_.contains(call.callee)) return nullptr;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const ExprRef made = builder().definition_of(call.args[i]);
      const auto* closure = made.as<Closure>();
      const String* copy =
          closure ? copy_for(call.callee, i, *closure, type_of(call.args[i])) : nullptr;
      if (!copy) continue;
      auto now = make<Call>(call);
      now->callee = *copy;
      now->args = closure->captures;
      for (size_t k = 0; k < call.args.size(); ++k) {
        if (k != i) now->args.push_back(call.args[k]);
      }
      now->type_args.clear();
      const FunctionExpr& general = *functions_.at(call.callee);
      const Array<String>& left = functions_.at(*copy)->type_params;
      for (size_t k = 0; k < call.type_args.size(); ++k) {
        const bool stays = std::ranges::find(left, general.type_params[k]) != left.end();
        if (stays) now->type_args.push_back(call.type_args[k]);
      }
      // The closure may state sizes that aren't known of the other arguments, or fewer than they
      // have, with which the result's are known.
      const FunctionExpr& callee = *functions_.at(*copy);
      if (!can_call_unchecked(callee, now->args, variances())) continue;
      const TypeRef type = type_of(callee);
      const Instance known =
          instantiate(*type.as<FunctionType>(), now->args, copy->str(), variances());
      if (is_subtype(known.result, result, variances())) return now;
    }
    return nullptr;
  }

  // The name of the copy of a function for a closure as its argument; null if none can be made.
  const String* copy_for(const String& name, size_t index, const Closure& closure,
                         const TypeRef& type) {
    const FunctionRef* called = functions_.find(closure.function);
    if (!called || !(*called)->type_params.empty() || has_symbols(**called)) return nullptr;
    const FunctionExpr& general = *functions_.at(name);
    const TypeRef& taken = general.params[index]->type;
    Matching matching(general.type_params, variances());
    matching.match(taken, type);
    const Map<String, TypeRef>& types = matching.type_args();
    // Symbols of the caller, or of the closure's type, which a copy doesn't bind.
    bool has_any = has_symbols(type);
    for (const auto& [_, known] : types) has_any = has_any || has_symbols(known);
    if (has_any) return nullptr;
    if (!may_be_known_as(substitute_type_vars(taken, types), type, variances())) return nullptr;
    const std::string key = cat(name, "/", index, "/", closure.function, "/", to_text(type));
    if (const auto known = copies_.find(key); known != copies_.end()) return &known->second;
    if (copies_.size() == kMostCopies) return nullptr;
    // A function in continuation-passing style calls itself with a closure that captures the one it
    // gets: a copy for each would never reach a copy that exists.
    std::set<String> closures = copied_for_[name];
    if (!closures.insert(closure.function).second) return nullptr;
    const FunctionRef copy = copied(general, index, closure, **called, type, types);
    functions_.set(copy->name, copy);
    copied_for_[copy->name] = std::move(closures);
    candidates_.insert(copy->name);
    made_.push_back(copy);
    return &copies_.emplace(key, copy->name).first->second;
  }

  // `types`: the type arguments that the closure's type determines.
  FunctionRef copied(const FunctionExpr& general, size_t index, const Closure& closure,
                     const FunctionExpr& called, const TypeRef& type,
                     const Map<String, TypeRef>& types) {
    auto copy = make<FunctionExpr>(general);
    copy->name = free_name(cat(general.name, ".", closure.function), functions_);
    copy->attrs.set(kExportAttr, Any(false));
    copy->attrs.erase(kResultsAttr);
    copy->type_params.clear();
    for (const String& param : general.type_params) {
      if (!types.contains(param)) copy->type_params.push_back(param);
    }
    copy->params.clear();
    auto value = make<Closure>(closure);
    value->captures.clear();
    for (size_t k = 0; k < closure.captures.size(); ++k) {
      const VarRef capture = new_var(called.params[k], called.params[k]->type);
      copy->params.push_back(capture);
      value->captures.push_back(capture);
    }
    auto binding = make<Binding>();
    binding->value = value;
    binding->span = general.span;
    std::vector<Operand> args;
    for (size_t k = 0; k < general.params.size(); ++k) {
      const VarRef& param = general.params[k];
      const VarRef now =
          new_var(param, k == index ? type : substitute_type_vars(param->type, types));
      args.push_back(now);
      if (k == index) {
        binding->var = now;
      } else {
        copy->params.push_back(now);
      }
    }
    copy->result_type = substitute_type_vars(general.result_type, types);
    const BlockRef body = renamed_body(
        general, args, [](std::string_view) { return std::nullopt; }, types);
    auto whole = make<Block>();
    whole->bindings.push_back(binding);
    whole->bindings.append(body->bindings.begin(), body->bindings.end());
    whole->result = body->result;
    copy->body = whole;
    return copy;
  }

  Map<String, FunctionRef> functions_;  // the module's and the copies, before they are rewritten
  std::set<String> candidates_;
  // By the function, its parameter, and what it gets as which type.
  std::map<std::string, String> copies_;
  std::map<String, std::set<String>> copied_for_;  // the closures' functions, by the copy
  std::deque<FunctionRef> made_;
};

}  // namespace

Module specialise_functions(const Module& module, PassContext&) {
  return Specialiser().specialised(module);
}

}  // namespace tenon::graph
