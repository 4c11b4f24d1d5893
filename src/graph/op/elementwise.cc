// Operators whose result element depends on one operand's element at the same index.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/pointwise.h"

namespace tenon::graph {
namespace {

// A unary operation of scalar expressions.
template <UnaryOp kOp>
Scalar plain(const InferContext&, const Elements& x) {
  return unary(kOp, x[0]);
}

Scalar reciprocal(const InferContext&, const Elements& x) {
  return number(x[0]->dtype, 1) / x[0];
}

Scalar reciprocal_root(const InferContext&, const Elements& x) {
  return number(x[0]->dtype, 1) / unary(UnaryOp::kSqrt, x[0]);
}

Scalar relu(const InferContext&, const Elements& x) {
  return x[0]->dtype.is_unsigned_int() ? x[0] : max_of(x[0], number(x[0]->dtype, 0));
}

// max(x, 0) + log(1 + exp(-|x|)), which doesn't overflow. What 1 + t loses of a small t is added to
// its logarithm, to first order.
Scalar softplus(const InferContext&, const Elements& x) {
  const DataType dtype = wide(x[0]->dtype);
  const Scalar v = as(dtype, x[0]), one = number(dtype, 1), zero = number(dtype, 0);
  const Scalar t = unary(UnaryOp::kExp, unary(UnaryOp::kNeg, unary(UnaryOp::kAbs, v)));
  const Scalar sum = one + t, lost = t - (sum - one);
  return as(x[0]->dtype, max_of(v, zero) + (unary(UnaryOp::kLog, sum) + lost / sum));
}

struct Function {
  const char* name;
  DtypeSet dtypes;
  ElementFn element;
  const char* summary;
};

const Function kFunctions[] = {
    {"sign", kNumbers, plain<UnaryOp::kSign>, "-1, 0 or 1; NaN stays NaN"},
    {"floor", kFloats, plain<UnaryOp::kFloor>, "the greatest integer that is not above x"},
    {"ceil", kFloats, plain<UnaryOp::kCeil>, "the least integer that is not below x"},
    {"trunc", kFloats, plain<UnaryOp::kTrunc>, "x without its fraction"},
    {"round", kFloats, plain<UnaryOp::kRoundEven>, "the nearest integer, halves to the even one"},
    {"sqrt", kFloats, plain<UnaryOp::kSqrt>, "the square root"},
    {"rsqrt", kFloats, reciprocal_root, "1 / sqrt(x)"},
    {"reciprocal", kFloats, reciprocal, "1 / x"},
    {"exp", kFloats, plain<UnaryOp::kExp>, "e to the power of x"},
    {"log", kFloats, plain<UnaryOp::kLog>, "the natural logarithm"},
    {"tanh", kFloats, plain<UnaryOp::kTanh>, "the hyperbolic tangent"},
    {"erf", kFloats, plain<UnaryOp::kErf>, "the error function"},
    {"sigmoid", kFloats, plain<UnaryOp::kSigmoid>, "1 / (1 + exp(-x))"},
    {"softplus", kFloats, softplus, "log(1 + exp(x)), without overflow"},
    {"sin", kFloats, plain<UnaryOp::kSin>, "the sine"},
    {"cos", kFloats, plain<UnaryOp::kCos>, "the cosine"},
    {"tan", kFloats, plain<UnaryOp::kTan>, "the tangent"},
    {"asin", kFloats, plain<UnaryOp::kAsin>, "the inverse sine"},
    {"acos", kFloats, plain<UnaryOp::kAcos>, "the inverse cosine"},
    {"atan", kFloats, plain<UnaryOp::kAtan>, "the inverse tangent"},
    {"sinh", kFloats, plain<UnaryOp::kSinh>, "the hyperbolic sine"},
    {"cosh", kFloats, plain<UnaryOp::kCosh>, "the hyperbolic cosine"},
    {"asinh", kFloats, plain<UnaryOp::kAsinh>, "the inverse hyperbolic sine"},
    {"acosh", kFloats, plain<UnaryOp::kAcosh>, "the inverse hyperbolic cosine"},
    {"atanh", kFloats, plain<UnaryOp::kAtanh>, "the inverse hyperbolic tangent"},
    {"logical_not", kBools, plain<UnaryOp::kNot>, "the negation"},
    {"bitwise_not", kInts, plain<UnaryOp::kBitNot>, "every bit negated"},
    {"is_nan", kFloats, plain<UnaryOp::kIsNan>, "whether x is NaN"},
    {"relu", kNumbers, relu, "max(x, 0)"},
};

// ---- neg, abs: also sizes ----

Values negated(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  if (!values) return std::nullopt;
  for (Dim& d : *values) {
    if (d.is_const(INT64_MIN)) return std::nullopt;
    d = Dim(0) - d;
  }
  return fitting(result.dtype, *values);
}

Values absolute(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  if (!values) return std::nullopt;
  for (Dim& d : *values) {
    if (d.is_const(INT64_MIN)) return std::nullopt;
    if (!proves_nonnegative(d)) d = max(d, Dim(0) - d);
  }
  return fitting(result.dtype, *values);
}

// ---- bit_cast ----

TypeRef infer_bit_cast(InferContext& cx) {
  const DataType from = cx.tensor(0).dtype, to = cx.attr_dtype("dtype");
  if (!contains(kNumbers | kComplex, to) || to.bits != from.bits) {
    cx.fail(cat("'dtype' is ", to_text(to), ", expected a number of ", int{from.bits}, " bits"));
  }
  return tensor_type(to, dims_of(cx.tensor(0)));
}

Scalar bit_cast_element(const InferContext& cx, const Elements& x) {
  return loop::bit_cast(cx.attr_dtype("dtype"), x[0]);
}

Sample sample_bit_cast(const Operator& op, uint64_t seed) {
  Random random(seed);
  const DataType from = random.dtype(op.operands[0].dtypes);
  std::vector<DataType> same_width;
  for (DataType to : members(kNumbers)) {
    if (to.bits == from.bits) same_width.push_back(to);
  }
  return {{sample_tensor(from, random.shape(0, 4))},
          attrs({{"dtype", Any(random.pick(same_width))}})};
}

// ---- is_inf ----

Scalar is_inf(const InferContext& cx, const Elements& x) {
  bool negative = cx.attr_bool("detect_negative");
  bool positive = cx.attr_bool("detect_positive");
  if (!negative && !positive) return literal_int(boolean, 0);
  Scalar infinite = unary(UnaryOp::kIsInf, x[0]);
  if (negative && positive) return infinite;
  Scalar zero = number(x[0]->dtype, 0);
  return both(infinite, positive ? lt(zero, x[0]) : lt(x[0], zero));
}

Sample sample_is_inf(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(0, 4))},
          attrs({{"detect_negative", random.coin()}, {"detect_positive", random.coin()}})};
}

// ---- cast ----

TypeRef infer_cast(InferContext& cx) {
  DataType to = cx.attr_dtype("dtype");
  if (!contains(kAll, to)) cx.fail(cat("'dtype' is ", to_text(to), ", expected ", describe(kAll)));
  return tensor_type(to, dims_of(cx.tensor(0)));
}

Scalar cast_element(const InferContext& cx, const Elements& x) {
  return as(cx.attr_dtype("dtype"), x[0]);
}

Values cast_values(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  if (!values) return std::nullopt;
  if (result.dtype.is_bool()) {
    for (Dim& d : *values) {
      if (d.is_const()) {
        d = Dim(d.is_const(0) ? 0 : 1);
      } else if (proves_less_equal(Dim(1), d) || proves_less_equal(d, Dim(-1))) {
        d = Dim(1);
      } else {
        return std::nullopt;
      }
    }
  }
  return fitting(result.dtype, *values);
}

Sample sample_cast(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(0, 4))},
          attrs({{"dtype", random.dtype(kAll)}})};
}

// ---- identity ----

Operand expand_identity(Builder&, const Call& call) {
  return call.args[0];
}

TypeRef infer_identity(InferContext& cx) {
  return cx.type(0);
}

Values identity_values(const InferContext& cx, const TensorType&) {
  return values_of(cx, 0);
}

Sample sample_identity(const Operator&, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(kAll), random.shape(0, 4))}, {}};
}

}  // namespace

void register_elementwise(OperatorTable& table) {
  for (const Function& f : kFunctions) {
    table.add(pointwise({.name = f.name,
                         .kind = OpKind::kElementwise,
                         .operands = {{"x", f.dtypes}},
                         .attrs = {},
                         .summary = f.summary,
                         .infer = nullptr,
                         .element = f.element}));
  }
  table.add(pointwise({.name = "neg",
                       .kind = OpKind::kElementwise,
                       .operands = {{"x", kNumbers}},
                       .attrs = {},
                       .summary = "-x; integers wrap",
                       .infer = nullptr,
                       .element = plain<UnaryOp::kNeg>,
                       .value = negated}));
  table.add(pointwise({.name = "abs",
                       .kind = OpKind::kElementwise,
                       .operands = {{"x", kNumbers}},
                       .attrs = {},
                       .summary = "the absolute value; integers wrap",
                       .infer = nullptr,
                       .element = plain<UnaryOp::kAbs>,
                       .value = absolute}));
  table.add(
      pointwise({.name = "is_inf",
                 .kind = OpKind::kElementwise,
                 .operands = {{"x", kFloats}},
                 .attrs = {{"detect_negative", AttrKind::kBool, "true", "whether -inf counts"},
                           {"detect_positive", AttrKind::kBool, "true", "whether +inf counts"}},
                 .summary = "whether x is infinite",
                 .infer = nullptr,
                 .element = is_inf,
                 .sample = sample_is_inf}));
  table.add(
      pointwise({.name = "cast",
                 .kind = OpKind::kElementwise,
                 .operands = {{"x", kAll}},
                 .attrs = {{"dtype", AttrKind::kDType, nullptr, "of the result"}},
                 .summary = "x in another dtype; float to integer truncates, saturates, NaN is 0",
                 .infer = infer_cast,
                 .element = cast_element,
                 .value = cast_values,
                 .sample = sample_cast}));
  table.add(
      pointwise({.name = "bit_cast",
                 .kind = OpKind::kElementwise,
                 .operands = {{"x", kNumbers | kComplex}},
                 .attrs = {{"dtype", AttrKind::kDType, nullptr, "of the result, as wide as x's"}},
                 .summary = "the bits of x as another dtype; a signalling NaN may become quiet",
                 .infer = infer_bit_cast,
                 .element = bit_cast_element,
                 .sample = sample_bit_cast}));
  table.add({.name = "identity",
             .kind = OpKind::kElementwise,
             .operands = {{"x"}},
             .attrs = {},
             .summary = "x itself",
             .infer = infer_identity,
             .expand = expand_identity,
             .value = identity_values,
             .sample = sample_identity});
}

}  // namespace tenon::graph
