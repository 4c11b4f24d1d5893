#include "evaluate/scalar_call.h"

#include "graph/ir/op.h"
#include "loop/scalar.h"
#include "support/failures.h"

namespace tenon::graph {
namespace {

loop::ExprRef literal_of(const Any& value, DataType dtype) {
  return dtype.is_float() ? loop::literal(dtype, value.as<double>())
                          : loop::literal_int(dtype, value.as<int64_t>());
}

}  // namespace

Any scalar_of(DataType dtype, int64_t bits) {
  if (dtype.is_float()) return loop::as_float(bits);
  return dtype.is_bool() ? Any(bits != 0) : Any(bits);
}

bool truth(const Any& condition) {
  if (auto tensor = condition.try_as<Tensor>(); tensor && *tensor) {
    return *tensor->reshaped({}).data_as<uint8_t>() != 0;  // which bytecode does, too
  }
  return condition.as<int64_t>() != 0;
}

// Scalar expressions fold as they are built, so an operator's element over literals is a literal;
// only a division by zero doesn't fold.
Any scalar_call(const Call& call, const Activation& activation) {
  const InferContext cx(call, nullptr);
  TENON_ASSERT(cx.op().element, "operator ", call.callee, " is not defined on scalars");
  std::vector<loop::ExprRef> operands(std::max(call.args.size(), cx.op().operands.size()));
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.args[i]) continue;
    operands[i] =
        literal_of(activation.value(call.args[i]), type_of(call.args[i]).as<ScalarType>()->dtype);
  }
  const loop::ExprRef result = cx.op().element(cx, operands);
  if (result->kind != loop::ExprKind::kLiteral) {
    throw division_by_zero();
  }
  return scalar_of(result->dtype, static_cast<const loop::Literal&>(*result).bits);
}

}  // namespace tenon::graph
