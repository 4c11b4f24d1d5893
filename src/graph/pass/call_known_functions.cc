#include "graph/pass/call_known_functions.h"

#include "graph/ir/instantiate.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class KnownCaller : public Rewriter {
 public:
  explicit KnownCaller(const Module& module) : functions_(module->functions) {}

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto* call = value.as<Call>();
    if (!call || call->kind != CalleeKind::kClosure) return keep(var, value);
    const ExprRef made = builder().definition_of(call->closure);
    auto* closure = made.as<Closure>();
    if (!closure) return keep(var, value);
    Array<Operand> args = closure->captures;
    args.append(call->args.begin(), call->args.end());
    // It may take tensors whose sizes aren't known here.
    if (!can_call(**functions_.find(closure->function), args, variances())) return keep(var, value);
    auto known = make<Call>();
    known->kind = CalleeKind::kGlobal;
    known->callee = closure->function;
    known->type_args = closure->type_args;
    known->args = args;
    return keep(var, known);
  }

 private:
  const Map<String, FunctionRef>& functions_;
};

}  // namespace

Module call_known_functions(const Module& module, PassContext&) {
  return KnownCaller(module).run(module);
}

}  // namespace tenon::graph
