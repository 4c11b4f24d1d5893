#include "graph/pass/materialize_values.h"

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class Materializer : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto* type = var->type.as<TensorType>();
    const bool constant_time = type && type->value_known && type->rank <= 1;
    if (!constant_time || !operator_of(value)) return keep(var, value);
    return builder().bind_typed(
        make_call(CalleeKind::kPacked, kMemoryValues, {}, values_attrs(type->values), var->type),
        var->type, var->name);
  }
};

}  // namespace

Module materialize_values(const Module& module, PassContext&) {
  return Materializer().run(module);
}

}  // namespace tenon::graph
