#include "graph/pass/call_scalar_kernels.h"

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"
#include "graph/op/pointwise.h"

namespace tenon::graph {
namespace {

class ScalarKernels : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const Operator* op = operator_of(value);
    if (!op || !var->type.is<ScalarType>()) return keep(var, value);
    const Call& call = *value.as<Call>();
    if (!needs_kernel(*op, call)) return keep(var, value);
    std::vector<Operand> tensors;
    for (const Operand& arg : call.args) tensors.push_back(arg ? builder().tensor_of(arg) : arg);
    const Operand result = builder().op(call.callee.view(), tensors, call.attrs);
    return builder().bind_stated(element_call(result), var->name);
  }
};

}  // namespace

Module call_scalar_kernels(const Module& module, PassContext&) {
  return ScalarKernels().run(module);
}

}  // namespace tenon::graph
