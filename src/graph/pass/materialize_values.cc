#include "graph/pass/materialize_values.h"

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class Materializer : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto type = var->type.cast<TensorType>();
    const bool constant_time = type && type->value_known && type->rank <= 1;
    if (!constant_time || !operator_of(value)) return keep(var, value);
    return builder().bind_stated(values_call(type), var->name);
  }
};

}  // namespace

Module materialize_values(const Module& module, PassContext&) {
  return Materializer().run(module);
}

}  // namespace tenon::graph
