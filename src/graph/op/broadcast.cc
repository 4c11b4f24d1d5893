// Operators whose operands are broadcast against each other by numpy's rule: arithmetic,
// comparisons, logic, bits, `where` and `clip`.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

// What is known of one element, from what is known of the operands' elements.
using ValueOf = std::optional<Dim> (*)(const Dim& a, const Dim& b);

struct Function {
  const char* name;
  uint32_t dtypes;
  bool tests;  // the result is bool
  Scalar (*apply)(const Scalar& a, const Scalar& b);
  ValueOf value;
  bool scalars;
  const char* summary;
};

template <BinaryOp kOp>
Scalar plain(const Scalar& a, const Scalar& b) {
  return binary(kOp, a, b);
}

Scalar floor_divide(const Scalar& a, const Scalar& b) {
  return a->dtype.is_float() ? unary(UnaryOp::kFloor, a / b) : floor_div(a, b);
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

template <int kWhich>
std::optional<Dim> known_logic(const Dim& a, const Dim& b) {
  if constexpr (kWhich == 0) {  // and
    if (a.is_const(0) || b.is_const(0)) return Dim(0);
    if (a.is_const() && b.is_const()) return Dim(1);
  } else if constexpr (kWhich == 1) {  // or
    if ((a.is_const() && !a.is_const(0)) || (b.is_const() && !b.is_const(0))) return Dim(1);
    if (a.is_const() && b.is_const()) return Dim(0);
  } else {
    if (a.is_const() && b.is_const()) return Dim(a.is_const(0) != b.is_const(0) ? 1 : 0);
  }
  return std::nullopt;
}

const Function kFunctions[] = {
    {"add", kNumbers, false, plain<BinaryOp::kAdd>,
     [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a + b; }, true,
     "a + b; integers wrap"},
    {"sub", kNumbers, false, plain<BinaryOp::kSub>,
     [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a - b; }, true,
     "a - b; integers wrap"},
    {"mul", kNumbers, false, plain<BinaryOp::kMul>,
     [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a * b; }, true,
     "a * b; integers wrap"},
    {"div", kNumbers, false, plain<BinaryOp::kDiv>, known_quotient, true,
     "a / b; integers truncate, and a zero divisor is an error"},
    {"floor_div", kNumbers, false, floor_divide, known_floor_quotient, true,
     "floor(a / b); an integer zero divisor is an error"},
    {"mod", kNumbers, false, plain<BinaryOp::kMod>, known_modulo, true,
     "the remainder with the sign of b; an integer zero divisor is an error"},
    {"rem", kNumbers, false, plain<BinaryOp::kRem>, known_remainder, true,
     "the remainder with the sign of a (fmod); an integer zero divisor is an error"},
    {"minimum", kNumbers, false, plain<BinaryOp::kMin>,
     [](const Dim& a, const Dim& b) -> std::optional<Dim> { return min(a, b); }, true,
     "the lesser; NaN if either is"},
    {"maximum", kNumbers, false, plain<BinaryOp::kMax>,
     [](const Dim& a, const Dim& b) -> std::optional<Dim> { return max(a, b); }, true,
     "the greater; NaN if either is"},
    {"atan2", kFloats, false, plain<BinaryOp::kAtan2>, nullptr, false,
     "the angle of the point (b, a)"},
    {"equal", kAll, true, plain<BinaryOp::kEq>, known_test<BinaryOp::kEq>, true, "a == b"},
    {"not_equal", kAll, true, plain<BinaryOp::kNe>, known_test<BinaryOp::kNe>, true, "a != b"},
    {"less", kNumbers, true, plain<BinaryOp::kLt>, known_test<BinaryOp::kLt>, true, "a < b"},
    {"less_equal", kNumbers, true, plain<BinaryOp::kLe>, known_test<BinaryOp::kLe>, true, "a <= b"},
    {"greater", kNumbers, true, [](const Scalar& a, const Scalar& b) { return lt(b, a); },
     known_test_reversed<BinaryOp::kLt>, true, "a > b"},
    {"greater_equal", kNumbers, true, [](const Scalar& a, const Scalar& b) { return le(b, a); },
     known_test_reversed<BinaryOp::kLe>, true, "a >= b"},
    {"logical_and", kBools, false, plain<BinaryOp::kAnd>, known_logic<0>, true, "a and b"},
    {"logical_or", kBools, false, plain<BinaryOp::kOr>, known_logic<1>, true, "a or b"},
    {"logical_xor", kBools, false, plain<BinaryOp::kXor>, known_logic<2>, true, "a or b, not both"},
    {"bitwise_and", kInts, false, plain<BinaryOp::kAnd>, nullptr, false, "a and b, bit by bit"},
    {"bitwise_or", kInts, false, plain<BinaryOp::kOr>, nullptr, false, "a or b, bit by bit"},
    {"bitwise_xor", kInts, false, plain<BinaryOp::kXor>, nullptr, false,
     "a or b, not both, bit by bit"},
    {"shift_left", kInts, false, plain<BinaryOp::kShl>, nullptr, false,
     "a * 2^b; past the width it is 0"},
    {"shift_right", kInts, false, plain<BinaryOp::kShr>, nullptr, false,
     "floor(a / 2^b); past the width it is 0"},
};

const Function& function_of(const InferContext& cx) {
  for (const Function& f : kFunctions) {
    if (std::string_view(f.name) == std::string_view(cx.call().callee)) return f;
  }
  TENON_ASSERT(false, "no broadcast function ", cx.call().callee);
  return kFunctions[0];
}

std::vector<Dim> broadcast_operands(InferContext& cx) {
  std::vector<std::vector<Dim>> shapes;
  for (size_t i = 0; i < cx.arg_count(); ++i) {
    if (cx.has(i)) shapes.push_back(dims_of(cx.tensor(i)));
  }
  return cx.broadcast_shapes(shapes);
}

// Loads operand i at the element of the result, broadcast.
Scalar operand(const LowerContext& cx, size_t i, const Indices& indices) {
  return load_broadcast(cx.input(i), indices, dims_of(cx.output()));
}

// The elements of operand i, repeated to `count` of them.
Values repeated(const InferContext& cx, size_t i, int64_t count) {
  auto values = values_of(cx, i);
  if (!values) return std::nullopt;
  if (values->size() == 1) return std::vector<Dim>(static_cast<size_t>(count), values->front());
  if (static_cast<int64_t>(values->size()) != count) return std::nullopt;
  return values;
}

// ---- the table's functions ----

TypeRef infer_binary(InferContext& cx) {
  const Function& f = function_of(cx);
  DataType dtype = tensor_of(cx, 0, f.dtypes).dtype;
  tensor_of(cx, 1, f.dtypes);
  require_same_dtype(cx, 1, 0);
  return tensor_type(f.tests ? boolean : dtype, broadcast_operands(cx));
}

loop::ComputeRef lower_binary(const LowerContext& cx) {
  const Function& f = function_of(cx.info());
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    return f.apply(operand(cx, 0, i), operand(cx, 1, i));
  })});
}

Values binary_values(const InferContext& cx, const TensorType& result) {
  const Function& f = function_of(cx);
  auto count = carried_count(result);
  if (!count || !contains(kInts | kBools, cx.tensor(0).dtype)) return std::nullopt;
  auto a = repeated(cx, 0, *count), b = repeated(cx, 1, *count);
  if (!a || !b) return std::nullopt;
  std::vector<Dim> out;
  for (size_t i = 0; i < a->size(); ++i) {
    std::optional<Dim> value;
    try {
      value = f.value((*a)[i], (*b)[i]);
    } catch (const Error&) {  // past 64 bits: the element wraps, which no Dim can say
    }
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return fitting(result.dtype, out);
}

template <uint32_t kSet>
Sample sample_binary(uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(kSet);
  std::vector<int64_t> a = random.shape(0, 4), b = a;
  for (int64_t& n : b) {
    if (random.between(0, 3) == 0) n = 1;
  }
  b.erase(b.begin(), b.begin() + random.between(0, static_cast<int64_t>(b.size())));
  if (random.coin()) std::swap(a, b);
  return {{sample_tensor(dtype, a), sample_tensor(dtype, b)}, {}};
}

SampleFn sample_of(uint32_t dtypes) {
  switch (dtypes) {
    case kFloats:
      return sample_binary<kFloats>;
    case kInts:
      return sample_binary<kInts>;
    case kBools:
      return sample_binary<kBools>;
    case kAll:
      return sample_binary<kAll>;
    default:
      return sample_binary<kNumbers>;
  }
}

// ---- pow ----

TypeRef infer_pow(InferContext& cx) {
  DataType dtype = tensor_of(cx, 0, kNumbers).dtype;
  tensor_of(cx, 1, kNumbers);
  return tensor_type(dtype, broadcast_operands(cx));
}

// An integer to the power of a float is computed in the wider of the float and f64.
Scalar power(const Scalar& a, const Scalar& b) {
  if (a->dtype == b->dtype) return binary(BinaryOp::kPow, a, b);
  DataType common = a->dtype;
  if (a->dtype.is_float() && b->dtype.is_float()) {
    common = a->dtype.bits >= b->dtype.bits ? a->dtype : b->dtype;
  } else if (b->dtype.is_float()) {
    common = f64;
  }
  return as(a->dtype, binary(BinaryOp::kPow, as(common, a), as(common, b)));
}

loop::ComputeRef lower_pow(const LowerContext& cx) {
  return cx.compute({map_stage(
      cx.output(), [&](const Indices& i) { return power(operand(cx, 0, i), operand(cx, 1, i)); })});
}

// ---- where ----

TypeRef infer_where(InferContext& cx) {
  tensor_of(cx, 0, kBools);
  DataType dtype = tensor_of(cx, 1, kAll).dtype;
  require_same_dtype(cx, 2, 1);
  return tensor_type(dtype, broadcast_operands(cx));
}

loop::ComputeRef lower_where(const LowerContext& cx) {
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    return select(operand(cx, 0, i), operand(cx, 1, i), operand(cx, 2, i));
  })});
}

Values where_values(const InferContext& cx, const TensorType& result) {
  auto count = carried_count(result);
  if (!count) return std::nullopt;
  auto x = repeated(cx, 1, *count), y = repeated(cx, 2, *count);
  if (!x || !y) return std::nullopt;
  auto condition = repeated(cx, 0, *count);
  for (size_t i = 0; i < x->size(); ++i) {
    if ((*x)[i] == (*y)[i]) continue;  // the same whatever the condition is
    if (!condition || !(*condition)[i].is_const()) return std::nullopt;
    if ((*condition)[i].is_const(0)) (*x)[i] = (*y)[i];
  }
  return x;
}

Sample sample_where(uint64_t seed) {
  Sample s = sample_binary<kAll>(seed);
  Random random(seed + 1);
  const auto* x = type_as<TensorType>(s.operands[random.coin() ? 0 : 1]);
  s.operands.insert(s.operands.begin(), tensor_type(boolean, dims_of(*x)));
  return s;
}

// ---- clip ----

TypeRef infer_clip(InferContext& cx) {
  DataType dtype = tensor_of(cx, 0, kNumbers).dtype;
  for (size_t i = 1; i < cx.arg_count(); ++i) {
    if (cx.has(i)) require_same_dtype(cx, i, 0);
  }
  return tensor_type(dtype, broadcast_operands(cx));
}

loop::ComputeRef lower_clip(const LowerContext& cx) {
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Scalar x = operand(cx, 0, i);
    if (cx.info().has(1)) x = max_of(x, operand(cx, 1, i));
    if (cx.info().has(2)) x = min_of(x, operand(cx, 2, i));
    return x;
  })});
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

Sample sample_clip(uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(kNumbers);
  Sample s{{sample_tensor(dtype, random.shape(0, 4))}, {}};
  for (int bound = 0; bound < 2; ++bound) {
    s.operands.push_back(random.coin() ? sample_tensor(dtype, {}) : unit_type());
  }
  return s;
}

}  // namespace

void register_broadcast(OperatorTable& table) {
  for (const Function& f : kFunctions) {
    table.add({.name = f.name,
               .kind = OpKind::kBroadcast,
               .operands = {{"a"}, {"b"}},
               .attrs = {},
               .summary = f.summary,
               .infer = infer_binary,
               .lower = lower_binary,
               .value = f.value != nullptr ? binary_values : nullptr,
               .sample = sample_of(f.dtypes),
               .scalars = f.scalars});
  }
  table.add({.name = "pow",
             .kind = OpKind::kBroadcast,
             .operands = {{"a"}, {"b"}},
             .attrs = {},
             .summary = "a to the power of b, in the dtype of a",
             .infer = infer_pow,
             .lower = lower_pow,
             .sample = sample_binary<kNumbers>});
  table.add({.name = "where",
             .kind = OpKind::kBroadcast,
             .operands = {{"condition"}, {"x"}, {"y"}},
             .attrs = {},
             .summary = "x where the condition is true, y elsewhere",
             .infer = infer_where,
             .lower = lower_where,
             .value = where_values,
             .sample = sample_where,
             .scalars = true});
  table.add({.name = "clip",
             .kind = OpKind::kBroadcast,
             .operands = {{"x"}, {"min", OperandSpec::kOptional}, {"max", OperandSpec::kOptional}},
             .attrs = {},
             .summary = "min(max(x, min), max); an absent bound bounds nothing",
             .infer = infer_clip,
             .lower = lower_clip,
             .value = clip_values,
             .sample = sample_clip});
}

}  // namespace tenon::graph
