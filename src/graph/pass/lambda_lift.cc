#include "graph/pass/lambda_lift.h"

#include "graph/ir/free_names.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class Lifter : public Rewriter {
 public:
  // The module's functions without literals, and those made of literals.
  Module lifted(const Module& module) {
    names_ = module->functions;
    Module rewritten = run(module);
    if (made_.empty()) return rewritten;
    Map<String, FunctionRef> functions = rewritten->functions;
    for (const FunctionRef& function : made_) functions.set(function->name, function);
    return with_functions(rewritten, functions);
  }

 protected:
  void enter(const FunctionRef& function) override { enclosing_ = function; }

  Operand rewrite_literal(const VarRef& var, const FunctionRef& literal) override {
    const FreeNames free = free_names(*literal);
    auto closure = make<Closure>();
    closure->function =
        free_name(cat(enclosing_->name, ".", var->name.empty() ? "fn" : var->name.view()), names_);
    for (const String& name : enclosing_->type_params) {
      closure->type_args.push_back(type_var(name));
    }
    auto lifted = make<FunctionExpr>(*literal);
    lifted->name = closure->function;
    lifted->type_params = enclosing_->type_params;
    lifted->attrs.set(kExportAttr, Any(false));
    lifted->params.clear();
    Array<Operand> inner;  // the captures, as the function's own parameters
    const auto add = [&](const VarRef& param, const Operand& captured) {
      lifted->params.push_back(param);
      inner.push_back(param);
      closure->captures.push_back(captured);
    };
    SymbolSet bound, needed = free.symbols;
    for (const VarRef& captured : free.variables) {
      collect_binding_symbols(captured->type, &bound);
      collect_symbols(captured->type, &needed);
    }
    for (const std::string& symbol : needed) {
      if (!builder().in_scope(symbol) || bound.contains(symbol)) continue;
      const Operand size = builder().bind(make_size(Dim::symbol(symbol)), symbol);
      auto param = make<Var>();
      param->name = symbol;
      param->type = type_of(size);
      add(param, size);
    }
    // A variable's node serves both functions: neither sees the other's bindings.
    for (const VarRef& captured : free.variables) add(captured, captured);
    for (const VarRef& param : literal->params) lifted->params.push_back(param);
    if (literal->self) {
      lifted->body =
          with_self(*literal, make<Closure>(closure->function, closure->type_args, inner));
      lifted->self = nullptr;
    }
    names_.set(closure->function, lifted);
    made_.push_back(lifted);
    return keep(var, closure);
  }

 private:
  // The literal's body, in which the literal itself is a closure that is made anew.
  static BlockRef with_self(const FunctionExpr& literal, const Ref<Closure>& closure) {
    auto binding = make<Binding>();
    binding->var = literal.self;
    binding->value = closure;
    binding->span = literal.span;
    auto body = make<Block>();
    body->bindings.push_back(binding);
    body->bindings.append(literal.body->bindings.begin(), literal.body->bindings.end());
    body->result = literal.body->result;
    return body;
  }

  Map<String, FunctionRef> names_;  // the module's and those made
  std::vector<FunctionRef> made_;
  FunctionRef enclosing_;
};

}  // namespace

Module lambda_lift(const Module& module, PassContext&) {
  return Lifter().lifted(module);
}

}  // namespace tenon::graph
