#include "evaluate/scalar_call.h"

#include <optional>
#include <utility>

#include "loop/scalar.h"

namespace tenon::graph {
namespace {

using loop::BinaryOp;
using loop::UnaryOp;

std::optional<UnaryOp> unary_named(std::string_view op) {
  if (op == "neg") return UnaryOp::kNeg;
  if (op == "logical_not") return UnaryOp::kNot;
  return std::nullopt;
}

struct BinaryCall {
  std::string_view op;
  BinaryOp binary;
  bool swapped = false;  // of b and a
};
constexpr BinaryCall kBinaryCalls[] = {
    {"add", BinaryOp::kAdd},
    {"sub", BinaryOp::kSub},
    {"mul", BinaryOp::kMul},
    {"div", BinaryOp::kDiv},
    {"floor_div", BinaryOp::kFloorDiv},
    {"mod", BinaryOp::kMod},
    {"rem", BinaryOp::kRem},
    {"minimum", BinaryOp::kMin},
    {"maximum", BinaryOp::kMax},
    {"equal", BinaryOp::kEq},
    {"not_equal", BinaryOp::kNe},
    {"less", BinaryOp::kLt},
    {"less_equal", BinaryOp::kLe},
    {"greater", BinaryOp::kLt, true},
    {"greater_equal", BinaryOp::kLe, true},
    {"logical_and", BinaryOp::kAnd},
    {"logical_or", BinaryOp::kOr},
    {"logical_xor", BinaryOp::kXor},
};

int64_t binary(const BinaryCall& row, DataType operands, int64_t a, int64_t b) {
  if (row.swapped) std::swap(a, b);
  const std::optional<int64_t> result = loop::scalar_binary(row.binary, operands, a, b);
  if (!result) throw Error(ErrorKind::Runtime, cat(row.op, ": division by zero"));
  return *result;
}

DataType dtype_of(const Operand& operand) {
  return type_of(operand).as<ScalarType>()->dtype;
}

int64_t integer_call(const Call& call, DataType dtype, const Activation& activation) {
  const std::string_view op = call.callee;
  const DataType operands = dtype_of(call.args[0]);
  auto integer = [&](size_t i) { return activation.value(call.args[i]).as<int64_t>(); };
  if (op == "cast") return loop::scalar_cast(dtype, operands, integer(0));
  if (auto unary = unary_named(op)) return loop::scalar_unary(*unary, operands, integer(0));
  for (const BinaryCall& row : kBinaryCalls) {
    if (row.op == op) return binary(row, operands, integer(0), integer(1));
  }
  throw Error(ErrorKind::Unsupported, cat("operator ", op, " is not defined on scalars"));
}

}  // namespace

bool truth(const Any& condition) {
  if (auto tensor = condition.try_as<Tensor>(); tensor && *tensor) {
    if (tensor->count() != 1 || !tensor->dtype().is_bool()) {
      throw Error(ErrorKind::Runtime, "a condition is one boolean");
    }
    return *tensor->data_as<uint8_t>() != 0;
  }
  return condition.as<int64_t>() != 0;
}

Any scalar_call(const Call& call, DataType dtype, const Activation& activation) {
  const std::string_view op = call.callee;
  if (op == "where") {
    return activation.value(call.args[truth(activation.value(call.args[0])) ? 1 : 2]);
  }
  for (const Operand& arg : call.args) {
    if (!dtype.is_float() && !dtype_of(arg).is_float()) continue;
    throw Error(ErrorKind::Unsupported,
                cat(op, " of floating scalars is parsed and checked, but not run by this version"))
        .help("use a tensor of rank 0 instead, such as tensor[f32]");
  }
  const int64_t result = integer_call(call, dtype, activation);
  return dtype.is_bool() ? Any(result != 0) : Any(result);
}

}  // namespace tenon::graph
