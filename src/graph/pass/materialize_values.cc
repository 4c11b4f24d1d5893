#include "graph/pass/materialize_values.h"

#include <algorithm>

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class Materializer : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (!operator_of(value)) return keep(var, value);
    if (const auto* tuple = var->type.as<TupleType>()) return rewrite_tuple(var, value, *tuple);
    if (!is_known(var->type)) return keep(var, value);
    return builder().bind_stated(values_call(var->type.cast<TensorType>()), var->name);
  }

 private:
  static bool is_known(const TypeRef& type) {
    const auto* tensor = type.as<TensorType>();
    return tensor && tensor->value_known && tensor->rank <= 1;
  }

  // The results of an operator with several, such as split, of which some are known.
  Operand rewrite_tuple(const VarRef& var, const ExprRef& value, const TupleType& type) {
    if (std::ranges::none_of(type.fields, is_known)) return keep(var, value);
    const Operand computed =
        builder().bind_typed(value, without_known_values(var->type), var->name);
    std::vector<Operand> fields;
    for (size_t i = 0; i < type.fields.size(); ++i) {
      const TypeRef& field = type.fields[i];
      fields.push_back(is_known(field)
                           ? builder().bind_stated(values_call(field.cast<TensorType>()))
                           : builder().field(computed, static_cast<int64_t>(i)));
    }
    return builder().tuple(fields);
  }
};

}  // namespace

Module materialize_values(const Module& module, PassContext&) {
  return Materializer().run(module);
}

}  // namespace tenon::graph
