// Operators whose operands are broadcast against each other by numpy's rule: arithmetic,
// comparisons, logic, bits, `where` and `clip`.
#include "graph/op/families.h"
#include "graph/op/pointwise.h"

namespace tenon::graph {
namespace {

template <BinaryOp kOp>
Scalar plain(const InferContext&, const Elements& x) {
  return binary(kOp, x[0], x[1]);
}

template <BinaryOp kOp>
Scalar reversed(const InferContext&, const Elements& x) {
  return binary(kOp, x[1], x[0]);
}

// The quotient of f16s isn't rounded before its floor is taken.
Scalar floor_divide(const InferContext&, const Elements& x) {
  const DataType dtype = x[0]->dtype;
  if (!dtype.is_float()) return floor_div(x[0], x[1]);
  const DataType wide = dtype == f64 ? f64 : f32;
  return as(dtype, unary(UnaryOp::kFloor, as(wide, x[0]) / as(wide, x[1])));
}

// ---- carried elements ----

// A result element as an expression of the operands' elements, if it is known.
using ValueOf = std::optional<Dim> (*)(const Dim& a, const Dim& b);

std::optional<Dim> known_sum(const Dim& a, const Dim& b) {
  return a + b;
}
std::optional<Dim> known_difference(const Dim& a, const Dim& b) {
  return a - b;
}
std::optional<Dim> known_product(const Dim& a, const Dim& b) {
  return a * b;
}
std::optional<Dim> known_minimum(const Dim& a, const Dim& b) {
  return min(a, b);
}
std::optional<Dim> known_maximum(const Dim& a, const Dim& b) {
  return max(a, b);
}

template <BinaryOp kOp>
std::optional<Dim> known_test(const Dim& a, const Dim& b) {
  bool yes = false, no = false;
  if constexpr (kOp == BinaryOp::kEq || kOp == BinaryOp::kNe) {
    yes = proves_equal(a, b);
    no = proves_differ(a, b);
    if constexpr (kOp == BinaryOp::kNe) std::swap(yes, no);
  } else if constexpr (kOp == BinaryOp::kLe) {
    yes = proves_less_equal(a, b);
    no = proves_less_equal(b + 1, a);
  } else {
    yes = proves_less_equal(a + 1, b);
    no = proves_less_equal(b, a);
  }
  if (!yes && !no) return std::nullopt;
  return Dim(yes ? 1 : 0);
}

template <BinaryOp kOp>
std::optional<Dim> known_test_reversed(const Dim& a, const Dim& b) {
  return known_test<kOp>(b, a);
}

std::optional<Dim> known_quotient(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    if (b.is_const(0) || (a.is_const(INT64_MIN) && b.is_const(-1))) return std::nullopt;
    return Dim(*a.as_const() / *b.as_const());
  }
  if (proves_nonnegative(a) && proves_less_equal(Dim(1), b)) return floordiv(a, b);
  return std::nullopt;
}

std::optional<Dim> known_floor_quotient(const Dim& a, const Dim& b) {
  if (b.is_const(-1) && a.is_const()) return Dim(0) - a;
  if (proves_less_equal(Dim(1), b) || (b.is_const() && !b.is_const(0))) return floordiv(a, b);
  return std::nullopt;
}

std::optional<Dim> known_modulo(const Dim& a, const Dim& b) {
  if (proves_less_equal(Dim(1), b) || (b.is_const() && !b.is_const(0))) return mod(a, b);
  return std::nullopt;
}

std::optional<Dim> known_remainder(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    if (b.is_const(0)) return std::nullopt;
    return b.is_const(-1) ? Dim(0) : Dim(*a.as_const() % *b.as_const());
  }
  if (proves_nonnegative(a) && proves_less_equal(Dim(1), b)) return mod(a, b);
  return std::nullopt;
}

std::optional<Dim> known_and(const Dim& a, const Dim& b) {
  if (a.is_const(0) || b.is_const(0)) return Dim(0);
  if (a.is_const() && b.is_const()) return Dim(1);
  return std::nullopt;
}

std::optional<Dim> known_or(const Dim& a, const Dim& b) {
  if ((a.is_const() && !a.is_const(0)) || (b.is_const() && !b.is_const(0))) return Dim(1);
  if (a.is_const() && b.is_const()) return Dim(0);
  return std::nullopt;
}

std::optional<Dim> known_xor(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return Dim(a.is_const(0) != b.is_const(0) ? 1 : 0);
  return std::nullopt;
}

// The elements of operand i, broadcast to `count` elements.
Values repeated(const InferContext& cx, size_t i, int64_t count) {
  auto values = values_of(cx, i);
  if (!values) return std::nullopt;
  if (values->size() == 1) return std::vector<Dim>(static_cast<size_t>(count), values->front());
  if (static_cast<int64_t>(values->size()) != count) return std::nullopt;
  return values;
}

// ---- the table ----

template <ValueOf kValue>
Values binary_values(const InferContext& cx, const TensorType& result) {
  auto count = carried_count(result);
  if (!count || !contains(kInts | kBools, cx.tensor(0).dtype)) return std::nullopt;
  auto a = repeated(cx, 0, *count), b = repeated(cx, 1, *count);
  if (!a || !b) return std::nullopt;
  std::vector<Dim> out;
  for (size_t i = 0; i < a->size(); ++i) {
    std::optional<Dim> value;
    try {
      value = kValue((*a)[i], (*b)[i]);
    } catch (const SizeError&) {  // the element would wrap, which a Dim can't express
    }
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return fitting(result.dtype, out);
}

struct Function {
  const char* name;
  DtypeSet dtypes;
  ElementFn element;
  ValueFn value;
  const char* summary;
  const char* sign = "";
};

const Function kFunctions[] = {
    {"add", kNumbers, plain<BinaryOp::kAdd>, binary_values<known_sum>, "a + b; integers wrap", "+"},
    {"sub", kNumbers, plain<BinaryOp::kSub>, binary_values<known_difference>,
     "a - b; integers wrap", "-"},
    {"mul", kNumbers, plain<BinaryOp::kMul>, binary_values<known_product>, "a * b; integers wrap",
     "*"},
    {"div", kNumbers, plain<BinaryOp::kDiv>, binary_values<known_quotient>,
     "a / b; integers truncate, and a zero divisor is an error", "/"},
    {"floor_div", kNumbers, floor_divide, binary_values<known_floor_quotient>,
     "floor(a / b); an integer zero divisor is an error"},
    {"mod", kNumbers, plain<BinaryOp::kMod>, binary_values<known_modulo>,
     "the remainder with the sign of b; an integer zero divisor is an error"},
    {"rem", kNumbers, plain<BinaryOp::kRem>, binary_values<known_remainder>,
     "the remainder with the sign of a (fmod); an integer zero divisor is an error"},
    {"minimum", kNumbers, plain<BinaryOp::kMin>, binary_values<known_minimum>,
     "the lesser; NaN if either is"},
    {"maximum", kNumbers, plain<BinaryOp::kMax>, binary_values<known_maximum>,
     "the greater; NaN if either is"},
    {"atan2", kFloats, plain<BinaryOp::kAtan2>, nullptr, "the angle of the point (b, a)"},
    {"equal", kAll | kStrings, plain<BinaryOp::kEq>, binary_values<known_test<BinaryOp::kEq>>,
     "a == b", "=="},
    {"not_equal", kAll | kStrings, plain<BinaryOp::kNe>, binary_values<known_test<BinaryOp::kNe>>,
     "a != b", "!="},
    {"less", kNumbers, plain<BinaryOp::kLt>, binary_values<known_test<BinaryOp::kLt>>, "a < b",
     "<"},
    {"less_equal", kNumbers, plain<BinaryOp::kLe>, binary_values<known_test<BinaryOp::kLe>>,
     "a <= b", "<="},
    {"greater", kNumbers, reversed<BinaryOp::kLt>,
     binary_values<known_test_reversed<BinaryOp::kLt>>, "a > b", ">"},
    {"greater_equal", kNumbers, reversed<BinaryOp::kLe>,
     binary_values<known_test_reversed<BinaryOp::kLe>>, "a >= b", ">="},
    {"logical_and", kBools, plain<BinaryOp::kAnd>, binary_values<known_and>, "a and b", "&&"},
    {"logical_or", kBools, plain<BinaryOp::kOr>, binary_values<known_or>, "a or b", "||"},
    {"logical_xor", kBools, plain<BinaryOp::kXor>, binary_values<known_xor>, "a or b, not both"},
    {"bitwise_and", kInts, plain<BinaryOp::kAnd>, nullptr, "a and b, bit by bit", "&"},
    {"bitwise_or", kInts, plain<BinaryOp::kOr>, nullptr, "a or b, bit by bit", "|"},
    {"bitwise_xor", kInts, plain<BinaryOp::kXor>, nullptr, "a or b, not both, bit by bit", "^"},
    {"shift_left", kInts, plain<BinaryOp::kShl>, nullptr, "a * 2^b; 0 if b is at least the width",
     "<<"},
    {"shift_right", kInts, plain<BinaryOp::kShr>, nullptr,
     "floor(a / 2^b); 0 if b is at least the width", ">>"},
};

// ---- pow ----

TypeRef infer_pow(InferContext& cx) {
  DataType dtype = cx.tensor(0).dtype;
  return tensor_type(dtype, broadcast_operands(cx));
}

// An integer raised to a float is computed in f64.
Scalar power(const InferContext&, const Elements& x) {
  const Scalar &a = x[0], &b = x[1];
  if (a->dtype == b->dtype) return binary(BinaryOp::kPow, a, b);
  DataType common = a->dtype;
  if (a->dtype.is_float() && b->dtype.is_float()) {
    common = a->dtype.bits >= b->dtype.bits ? a->dtype : b->dtype;
  } else if (b->dtype.is_float()) {
    common = f64;
  }
  return as(a->dtype, binary(BinaryOp::kPow, as(common, a), as(common, b)));
}

// ---- where ----

TypeRef infer_where(InferContext& cx) {
  DataType dtype = cx.tensor(1).dtype;
  require_same_dtype(cx, 2, 1);
  return tensor_type(dtype, broadcast_operands(cx));
}

Scalar where_element(const InferContext&, const Elements& x) {
  return select(x[0], x[1], x[2]);
}

Values where_values(const InferContext& cx, const TensorType& result) {
  auto count = carried_count(result);
  if (!count) return std::nullopt;
  auto x = repeated(cx, 1, *count), y = repeated(cx, 2, *count);
  if (!x || !y) return std::nullopt;
  auto condition = repeated(cx, 0, *count);
  for (size_t i = 0; i < x->size(); ++i) {
    if ((*x)[i] == (*y)[i]) continue;  // doesn't depend on the condition
    if (!condition || !(*condition)[i].is_const()) return std::nullopt;
    if ((*condition)[i].is_const(0)) (*x)[i] = (*y)[i];
  }
  return x;
}

Sample sample_where(const Operator& op, uint64_t seed) {
  Random random(seed + 1);
  // Two operands as for any binary operator, and a condition with the shape of one of them.
  Operator of_two = op;
  of_two.operands.erase(of_two.operands.begin());
  Sample s = sample_pointwise(of_two, seed);
  const auto* x = type_as<TensorType>(s.operands[random.coin() ? 0 : 1]);
  s.operands.insert(s.operands.begin(), tensor_type(boolean, dims_of(*x)));
  return s;
}

// ---- clip ----

Scalar clip(const InferContext&, const Elements& x) {
  Scalar y = x[0];
  if (x[1]) y = max_of(y, x[1]);
  if (x[2]) y = min_of(y, x[2]);
  return y;
}

Values clip_values(const InferContext& cx, const TensorType& result) {
  auto count = carried_count(result);
  if (!count) return std::nullopt;
  auto x = repeated(cx, 0, *count);
  for (size_t bound : {1, 2}) {
    if (!x || !cx.has(bound)) continue;
    auto limit = repeated(cx, bound, *count);
    if (!limit) return std::nullopt;
    for (size_t i = 0; i < x->size(); ++i) {
      (*x)[i] = bound == 1 ? max((*x)[i], (*limit)[i]) : min((*x)[i], (*limit)[i]);
    }
  }
  return x;
}

Sample sample_clip(const Operator& op, uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  Sample s{{sample_tensor(dtype, random.shape(0, 4))}, {}};
  for (int bound = 0; bound < 2; ++bound) {
    s.operands.push_back(random.coin() ? sample_tensor(dtype, {}) : unit_type());
  }
  return s;
}

}  // namespace

void register_broadcast(OperatorTable& table) {
  for (const Function& f : kFunctions) {
    table.add(pointwise({.name = f.name,
                         .kind = OpKind::kBroadcast,
                         .operands = {{"a", f.dtypes}, {"b", f.dtypes}},
                         .attrs = {},
                         .summary = f.summary,
                         .infer = nullptr,
                         .element = f.element,
                         .value = f.value,
                         .sign = f.sign}));
  }
  table.add(pointwise({.name = "pow",
                       .kind = OpKind::kBroadcast,
                       .operands = {{"a", kNumbers}, {"b", kNumbers}},
                       .attrs = {},
                       .summary = "a to the power of b, in the dtype of a",
                       .infer = infer_pow,
                       .element = power,
                       .sign = "**"}));
  table.add(pointwise({.name = "where",
                       .kind = OpKind::kBroadcast,
                       .operands = {{"condition", kBools}, {"x", kData}, {"y", kData}},
                       .attrs = {},
                       .summary = "x where the condition is true, y elsewhere",
                       .infer = infer_where,
                       .element = where_element,
                       .value = where_values,
                       .sample = sample_where}));
  table.add(pointwise({.name = "clip",
                       .kind = OpKind::kBroadcast,
                       .operands = {{"x", kNumbers},
                                    {"min", kNumbers, OperandSpec::kOptional},
                                    {"max", kNumbers, OperandSpec::kOptional}},
                       .attrs = {},
                       .summary = "min(max(x, min), max); an absent bound has no effect",
                       .infer = nullptr,
                       .element = clip,
                       .value = clip_values,
                       .sample = sample_clip}));
}

}  // namespace tenon::graph
