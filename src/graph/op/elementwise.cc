// Operators whose result element depends on one operand's element at the same index.
//
// One table of functions on scalars gives them all; only casts and is_inf have attributes.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

struct Function {
  const char* name;
  uint32_t dtypes;
  Scalar (*apply)(const Scalar& x);
  const char* summary;
  bool scalars = false;
};

template <UnaryOp kOp>
Scalar plain(const Scalar& x) {
  return unary(kOp, x);
}

Scalar one_over(const Scalar& x) {
  return number(x->dtype, 1) / x;
}

const Function kFunctions[] = {
    {"neg", kNumbers, plain<UnaryOp::kNeg>, "-x; integers wrap", true},
    {"abs", kNumbers, plain<UnaryOp::kAbs>, "the absolute value; integers wrap", true},
    {"sign", kNumbers, plain<UnaryOp::kSign>, "-1, 0 or 1; NaN stays NaN"},
    {"floor", kFloats, plain<UnaryOp::kFloor>, "the greatest integer that is not above x"},
    {"ceil", kFloats, plain<UnaryOp::kCeil>, "the least integer that is not below x"},
    {"trunc", kFloats, plain<UnaryOp::kTrunc>, "x without its fraction"},
    {"round", kFloats, plain<UnaryOp::kRoundEven>, "the nearest integer, halves to the even one"},
    {"sqrt", kFloats, plain<UnaryOp::kSqrt>, "the square root"},
    {"rsqrt", kFloats, [](const Scalar& x) { return one_over(unary(UnaryOp::kSqrt, x)); },
     "1 / sqrt(x)"},
    {"reciprocal", kFloats, one_over, "1 / x"},
    {"exp", kFloats, plain<UnaryOp::kExp>, "e to the power of x"},
    {"log", kFloats, plain<UnaryOp::kLog>, "the natural logarithm"},
    {"tanh", kFloats, plain<UnaryOp::kTanh>, "the hyperbolic tangent"},
    {"erf", kFloats, plain<UnaryOp::kErf>, "the error function"},
    {"sigmoid", kFloats, plain<UnaryOp::kSigmoid>, "1 / (1 + exp(-x))"},
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
    {"logical_not", kBools, plain<UnaryOp::kNot>, "the negation", true},
    {"bitwise_not", kInts, plain<UnaryOp::kBitNot>, "every bit negated"},
    {"is_nan", kFloats, plain<UnaryOp::kIsNan>, "whether x is NaN"},
    {"relu", kNumbers,
     [](const Scalar& x) {
       return x->dtype.is_unsigned_int() ? x : max_of(x, number(x->dtype, 0));
     },
     "max(x, 0)"},
};

const Function& function_of(const InferContext& cx) {
  for (const Function& f : kFunctions) {
    if (std::string_view(f.name) == std::string_view(cx.call().callee)) return f;
  }
  TENON_ASSERT(false, "no elementwise function ", cx.call().callee);
  return kFunctions[0];
}

TypeRef infer_same(InferContext& cx) {
  const TensorType& x = tensor_of(cx, 0, function_of(cx).dtypes);
  return tensor_type(x.dtype, dims_of(x));
}

TypeRef infer_test(InferContext& cx) {
  const TensorType& x = tensor_of(cx, 0, kFloats);
  return tensor_type(boolean, dims_of(x));
}

loop::ComputeRef lower_map(const LowerContext& cx, const std::function<Scalar(Scalar)>& apply) {
  return cx.compute(
      {map_stage(cx.output(), [&](const Indices& i) { return apply(load(cx.input(0), i)); })});
}

loop::ComputeRef lower_function(const LowerContext& cx) {
  return lower_map(cx, function_of(cx.info()).apply);
}

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

// ---- is_inf ----

loop::ComputeRef lower_is_inf(const LowerContext& cx) {
  bool negative = cx.info().attr_bool("detect_negative");
  bool positive = cx.info().attr_bool("detect_positive");
  return lower_map(cx, [&](const Scalar& x) -> Scalar {
    if (!negative && !positive) return literal_int(boolean, 0);
    Scalar infinite = unary(UnaryOp::kIsInf, x);
    if (negative && positive) return infinite;
    Scalar zero = number(x->dtype, 0);
    return both(infinite, positive ? lt(zero, x) : lt(x, zero));
  });
}

// ---- cast ----

TypeRef infer_cast(InferContext& cx) {
  const TensorType& x = tensor_of(cx, 0, kAll);
  DataType to = cx.attr_dtype("dtype");
  if (!contains(kAll, to)) cx.fail(cat("'dtype' is ", to_text(to), ", expected ", describe(kAll)));
  return tensor_type(to, dims_of(x));
}

loop::ComputeRef lower_cast(const LowerContext& cx) {
  return lower_map(cx, [&](const Scalar& x) { return as(cx.output()->dtype, x); });
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

Operand expand_identity(Builder&, const Call& call) {
  return call.args[0];
}

TypeRef infer_identity(InferContext& cx) {
  return cx.type(0);
}

Values identity_values(const InferContext& cx, const TensorType&) {
  return values_of(cx, 0);
}

template <uint32_t kSet>
Sample sample_unary(uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(kSet), random.shape(0, 4))}, {}};
}

SampleFn sample_of(uint32_t dtypes) {
  switch (dtypes) {
    case kFloats:
      return sample_unary<kFloats>;
    case kInts:
      return sample_unary<kInts>;
    case kBools:
      return sample_unary<kBools>;
    default:
      return sample_unary<kNumbers>;
  }
}

Sample sample_is_inf(uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(kFloats), random.shape(0, 4))},
          attrs({{"detect_negative", random.coin()}, {"detect_positive", random.coin()}})};
}

Sample sample_cast(uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(kAll), random.shape(0, 4))},
          attrs({{"dtype", random.dtype(kAll)}})};
}

}  // namespace

void register_elementwise(OperatorTable& table) {
  for (const Function& f : kFunctions) {
    Operator op;
    op.name = f.name;
    op.kind = OpKind::kElementwise;
    op.operands = {{"x"}};
    op.summary = f.summary;
    bool tests = std::string_view(f.name) == "is_nan";
    op.infer = tests ? infer_test : infer_same;
    op.lower = lower_function;
    op.sample = sample_of(f.dtypes);
    op.scalars = f.scalars;
    if (std::string_view(f.name) == "neg") op.value = negated;
    if (std::string_view(f.name) == "abs") op.value = absolute;
    table.add(std::move(op));
  }
  table.add({.name = "is_inf",
             .kind = OpKind::kElementwise,
             .operands = {{"x"}},
             .attrs = {{"detect_negative", AttrKind::kBool, "true", "whether -inf counts"},
                       {"detect_positive", AttrKind::kBool, "true", "whether +inf counts"}},
             .summary = "whether x is infinite",
             .infer = infer_test,
             .lower = lower_is_inf,
             .sample = sample_is_inf});
  table.add({.name = "cast",
             .kind = OpKind::kElementwise,
             .operands = {{"x"}},
             .attrs = {{"dtype", AttrKind::kDType, nullptr, "of the result"}},
             .summary = "x in another dtype; float to integer truncates, saturates, NaN is 0",
             .infer = infer_cast,
             .lower = lower_cast,
             .value = cast_values,
             .sample = sample_cast,
             .scalars = true});
  table.add({.name = "identity",
             .kind = OpKind::kElementwise,
             .operands = {{"x"}},
             .attrs = {},
             .summary = "x itself",
             .infer = infer_identity,
             .expand = expand_identity,
             .value = identity_values,
             .sample = sample_unary<kNumbers>});
}

}  // namespace tenon::graph
