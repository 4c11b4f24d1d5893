// Arithmetic, comparison, logic, bits and casts: one operator of ours for one of ONNX's.

#include <algorithm>
#include <cmath>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

template <const char* Name>
Operands unary(NodeContext& cx) {
  return {cx.op(Name, {cx.in(0)})};
}

// Before opset 7, `broadcast` and `axis` told where the second operand's shape lies in the first's.
Operands binary_operands(NodeContext& cx) {
  Operand x = cx.in(0), y = cx.in(1);
  if (cx.version() >= 7) return {x, y};
  bool broadcast = cx.attr_bool("broadcast", false);
  int64_t rx = cx.rank(x), ry = cx.rank(y);
  int64_t axis = cx.attr_int("axis", rx - ry);
  if (!broadcast || rx == ry) return {x, y};
  if (axis < 0) axis += rx;
  if (axis < 0 || axis + ry > rx) {
    cx.invalid(cat("axis ", axis, " for operands of rank ", rx, " and ", ry),
               cat("0 to ", rx - ry));
  }
  Dims shape = cx.dims(y);
  shape.resize(static_cast<size_t>(rx - axis), Dim(1));
  return {x, cx.reshape(y, shape)};
}

template <const char* Name>
Operands binary(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operands xy = binary_operands(cx);
  return {cx.op(Name, xy)};
}

// What a comparison or a connective of single numbers gives where the numbers are known.
std::optional<bool> outcome(NodeContext& cx, std::string_view name, const Operands& operands) {
  Ints known;
  for (const Operand& x : operands) {
    auto list = cx.ints(x);
    if (!list || list->size() != 1) return std::nullopt;
    known.push_back((*list)[0]);
  }
  const int64_t a = known[0], b = known.back();
  if (name == "equal") return a == b;
  if (name == "less") return a < b;
  if (name == "less_equal") return a <= b;
  if (name == "greater") return a > b;
  if (name == "greater_equal") return a >= b;
  if (name == "logical_not") return a == 0;
  if (name == "logical_and") return a != 0 && b != 0;
  if (name == "logical_or") return a != 0 || b != 0;
  TENON_ASSERT(name == "logical_xor", "no outcome of ", name);
  return (a != 0) != (b != 0);
}

// Exporters ask for ranks and sizes in conditions of If: one that is known decides its branch.
template <const char* Name, bool Unary = false>
Operands decided(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operands operands = Unary ? Operands{cx.in(0)} : binary_operands(cx);
  auto known = outcome(cx, Name, operands);
  if (!known) return {cx.op(Name, operands)};
  int64_t rank = 0;
  for (const Operand& x : operands) rank = std::max(rank, cx.rank(x));
  const Ints ones(static_cast<size_t>(rank), 1);
  return {graph::constant(make_tensor(boolean, ones, {*known ? 1.0 : 0.0}))};
}

// The folding of a variadic operator: Max, Min, Sum, Mean.
Operand fold(NodeContext& cx, const char* name) {
  Operand out = cx.in(0);
  for (size_t i = 1; i < cx.count(); ++i) out = cx.op(name, {out, cx.in(i)});
  return out;
}

template <const char* Name>
Operands variadic(NodeContext& cx) {
  return {fold(cx, Name)};
}

Operands mean(NodeContext& cx) {
  Operand sum = fold(cx, "add");
  return {cx.div(sum, cx.scalar_like(sum, static_cast<double>(cx.count())))};
}

Operands divide_elements(NodeContext& cx) {
  return {cx.op("div", binary_operands(cx))};
}

Operands mod_elements(NodeContext& cx) {
  bool fmod = cx.attr_bool("fmod", false);
  return {cx.op(fmod ? "rem" : "mod", {cx.in(0), cx.in(1)})};
}

Operands pow_elements(NodeContext& cx) {
  return {cx.op("pow", binary_operands(cx))};
}

Operands bit_shift(NodeContext& cx) {
  std::string direction = cx.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    cx.invalid(cat("direction=", direction), "LEFT or RIGHT");
  return {cx.op(direction == "LEFT" ? "shift_left" : "shift_right", {cx.in(0), cx.in(1)})};
}

Operands is_inf(NodeContext& cx) {
  return {cx.op("is_inf", {cx.in(0)},
                attrs({{"detect_negative", cx.attr_bool("detect_negative", true)},
                       {"detect_positive", cx.attr_bool("detect_positive", true)}}))};
}

Operands cast_to(NodeContext& cx) {
  cx.ignore("saturate");  // concerns 8-bit floats alone
  cx.ignore("round_mode");
  if (!cx.has_attr("to")) cx.invalid("no attribute 'to'", "the element type to cast to");
  return {cx.cast(cx.in(0), cx.attr_dtype("to", f32))};
}

// Before opset 6 the type was text.
Operands cast_to_named(NodeContext& cx) {
  std::string to = cx.attr_string("to", "");
  for (char& c : to) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (to == "float") to = "float32";
  if (to == "double") to = "float64";
  auto dtype = parse_dtype(to);
  if (!dtype) cx.unsupported(cat("to=", to, " not implemented"));
  return {cx.cast(cx.in(0), *dtype)};
}

Operands cast_like(NodeContext& cx) {
  cx.ignore("saturate");
  cx.ignore("round_mode");
  return {cx.cast(cx.in(0), cx.dtype(1))};
}

Operands identity(NodeContext& cx) {
  return {cx.in(0)};
}

Operands where(NodeContext& cx) {
  return {cx.op("where", {cx.in(0), cx.in(1), cx.in(2)})};
}

// Clip: bounds as attributes until opset 11, as operands since.
Operands clip_attributes(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operand low, high;
  if (cx.has_attr("min")) low = cx.scalar_like(cx.in(0), cx.attr_float("min", 0));
  if (cx.has_attr("max")) high = cx.scalar_like(cx.in(0), cx.attr_float("max", 0));
  if (!low && !high) return {cx.in(0)};
  return {cx.op("clip", {cx.in(0), low, high})};
}

Operands clip(NodeContext& cx) {
  auto bound = [&](size_t i) {
    // Some exporters write rank 1.
    return cx.has(i) ? cx.reshape(cx.in(i), {}) : Operand();
  };
  if (!cx.has(1) && !cx.has(2)) return {cx.in(0)};
  return {cx.op("clip", {cx.in(0), bound(1), bound(2)})};
}

// Training drops elements, unless the ratio is 0; where only running tells, it is checked then.
void refuse_to_drop(NodeContext& cx) {
  auto training = cx.number(cx.in(2));
  std::optional<double> ratio = cx.has(1) ? cx.number(cx.in(1)) : 0.5;
  if (training == 0.0 || ratio == 0.0) return;
  if (training && ratio) cx.unsupported("training_mode=1 not implemented");
  Operand drops = cx.reshape(cx.cast(cx.in(2), i64), {});
  if (!ratio) {
    Operand given = cx.reshape(cx.in(1), {});
    drops = cx.op("where",
                  {cx.op("equal", {given, cx.scalar_like(given, 0)}), cx.scalar(i64, 0), drops});
  }
  cx.b.match_elements(drops, {0});
}

Operands dropout(NodeContext& cx) {
  cx.ignore("ratio");
  cx.ignore("seed");
  cx.ignore("is_test");
  cx.ignore("consumed_inputs");
  if (cx.has(2)) refuse_to_drop(cx);
  Operands out = {cx.in(0)};
  if (cx.wants(1)) {
    // The mask of what is kept; before version 12 runtimes leave it empty.
    DataType mask = cx.version() >= 10 ? boolean : cx.dtype(0);
    out.push_back(cx.full(mask, cx.version() >= 12 ? 1 : 0, cx.dims(0)));
  }
  return out;
}

Operands sign_bit_cast(NodeContext& cx) {
  if (!cx.has_attr("to")) cx.invalid("no attribute 'to'", "the element type to cast to");
  DataType to = cx.attr_dtype("to", f32);
  if (to != cx.dtype(0)) cx.unsupported("reinterpreting bits not implemented");
  return {cx.in(0)};
}

}  // namespace

void register_elementwise(OpTable& t) {
  static constexpr char neg[] = "neg", abs[] = "abs", sign[] = "sign", floor[] = "floor",
                        ceil[] = "ceil", round[] = "round", sqrt[] = "sqrt",
                        reciprocal[] = "reciprocal", exp[] = "exp", log[] = "log", erf[] = "erf",
                        sin[] = "sin", cos[] = "cos", tan[] = "tan", asin[] = "asin",
                        acos[] = "acos", atan[] = "atan", sinh[] = "sinh", cosh[] = "cosh",
                        asinh[] = "asinh", acosh[] = "acosh", atanh[] = "atanh",
                        logical_not[] = "logical_not", bitwise_not[] = "bitwise_not",
                        is_nan[] = "is_nan", add[] = "add", sub[] = "sub", mul[] = "mul",
                        equal[] = "equal", less[] = "less", less_equal[] = "less_equal",
                        greater[] = "greater", greater_equal[] = "greater_equal",
                        logical_and[] = "logical_and", logical_or[] = "logical_or",
                        logical_xor[] = "logical_xor", bitwise_and[] = "bitwise_and",
                        bitwise_or[] = "bitwise_or", bitwise_xor[] = "bitwise_xor",
                        maximum[] = "maximum", minimum[] = "minimum";
  t.add("Neg", 1, unary<neg>);
  t.add("Abs", 1, unary<abs>);
  t.add("Sign", 9, unary<sign>);
  t.add("Floor", 1, unary<floor>);
  t.add("Ceil", 1, unary<ceil>);
  t.add("Round", 11, unary<round>);
  t.add("Sqrt", 1, unary<sqrt>);
  t.add("Reciprocal", 1, unary<reciprocal>);
  t.add("Exp", 1, unary<exp>);
  t.add("Log", 1, unary<log>);
  t.add("Erf", 9, unary<erf>);
  t.add("Sin", 7, unary<sin>);
  t.add("Cos", 7, unary<cos>);
  t.add("Tan", 7, unary<tan>);
  t.add("Asin", 7, unary<asin>);
  t.add("Acos", 7, unary<acos>);
  t.add("Atan", 7, unary<atan>);
  t.add("Sinh", 9, unary<sinh>);
  t.add("Cosh", 9, unary<cosh>);
  t.add("Asinh", 9, unary<asinh>);
  t.add("Acosh", 9, unary<acosh>);
  t.add("Atanh", 9, unary<atanh>);
  t.add("Not", 1, decided<logical_not, true>);
  t.add("BitwiseNot", 18, unary<bitwise_not>);
  t.add("IsNaN", 9, unary<is_nan>);
  t.add("IsInf", 10, is_inf);
  t.add("Add", 1, binary<add>);
  t.add("Sub", 1, binary<sub>);
  t.add("Mul", 1, binary<mul>);
  t.add("Div", 1, divide_elements);
  t.add("Mod", 10, mod_elements);
  t.add("Pow", 1, pow_elements);
  t.add("Equal", 1, decided<equal>);
  t.add("Less", 1, decided<less>);
  t.add("LessOrEqual", 12, decided<less_equal>);
  t.add("Greater", 1, decided<greater>);
  t.add("GreaterOrEqual", 12, decided<greater_equal>);
  t.add("And", 1, decided<logical_and>);
  t.add("Or", 1, decided<logical_or>);
  t.add("Xor", 1, decided<logical_xor>);
  t.add("BitwiseAnd", 18, binary<bitwise_and>);
  t.add("BitwiseOr", 18, binary<bitwise_or>);
  t.add("BitwiseXor", 18, binary<bitwise_xor>);
  t.add("BitShift", 11, bit_shift);
  t.add("Max", 1, variadic<maximum>);
  t.add("Min", 1, variadic<minimum>);
  t.add("Sum", 1, variadic<add>);
  t.add("Mean", 1, mean);
  t.add("Cast", 1, cast_to_named);
  t.add("Cast", 6, cast_to);
  t.add("CastLike", 15, cast_like);
  t.add("BitCast", 26, sign_bit_cast);
  t.add("Identity", 1, identity);
  t.add("Where", 9, where);
  t.add("Clip", 1, clip_attributes);
  t.add("Clip", 11, clip);
  t.add("Dropout", 1, dropout);
}

}  // namespace tenon::onnx
