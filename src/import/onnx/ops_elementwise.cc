// Arithmetic, comparison, logic, bits and casts: mostly one operator of graph IR per ONNX operator.

#include <algorithm>
#include <cmath>

#include "graph/ir/op.h"
#include "import/onnx/node_context.h"
#include "object/narrow_float.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// The graph IR operator with the same meaning as the node's; the table is below.
const char* ours(const NodeContext& cx);

Operands unary(NodeContext& cx) {
  return {cx.op(ours(cx), {cx.in(0)})};
}

// Before opset 7, `broadcast` and `axis` specify which axes the second operand is broadcast along.
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

Operands binary(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operands xy = binary_operands(cx);
  return {cx.op(ours(cx), xy)};
}

// The result of an operator on known single numbers or booleans.
std::optional<bool> outcome(NodeContext& cx, const char* name, const Operands& operands) {
  std::vector<loop::ExprRef> known;
  for (const Operand& x : operands) {
    auto list = cx.ints(x);
    if (!list || list->size() != 1) return std::nullopt;
    known.push_back(loop::literal_int(cx.dtype(x), (*list)[0]));
  }
  const auto call = graph::make_call(graph::CalleeKind::kOperator, name, operands);
  const graph::InferContext info(*call, nullptr);
  // The call is refused where it is made if it has the wrong number of operands.
  if (info.op().operands.size() != known.size()) return std::nullopt;
  return loop::as_int(info.op().element(info, known)) == 1;
}

// Exporters compare ranks and sizes in conditions of If; a known result decides the branch.
Operands decided(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  Operands operands = cx.count() == 1 ? Operands{cx.in(0)} : binary_operands(cx);
  auto known = outcome(cx, ours(cx), operands);
  if (!known) return {cx.op(ours(cx), operands)};
  int64_t rank = 0;
  for (const Operand& x : operands) rank = std::max(rank, cx.rank(x));
  const Ints ones(static_cast<size_t>(rank), 1);
  return {graph::constant(make_tensor(boolean, ones, {*known ? 1.0 : 0.0}))};
}

// Folds the operands of a variadic operator: Max, Min, Sum, Mean.
Operand fold(NodeContext& cx, const char* name) {
  Operand out = cx.in(0);
  for (size_t i = 1; i < cx.count(); ++i) out = cx.with_symbols(cx.op(name, {out, cx.in(i)}));
  return out;
}

Operands variadic(NodeContext& cx) {
  return {fold(cx, ours(cx))};
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

// The operand, as f32 if it is a float of 8 bits, with which only conversions compute.
Operand computable(NodeContext& cx) {
  const bool stored = cx.dtype(0).is_float() && cx.dtype(0).bits <= 8;
  return stored ? cx.cast(cx.in(0), f32) : cx.in(0);
}

Operands is_nan(NodeContext& cx) {
  return {cx.op("is_nan", {computable(cx)})};
}

Operands is_inf(NodeContext& cx) {
  return {cx.op("is_inf", {computable(cx)},
                attrs({{"detect_negative", cx.attr_bool("detect_negative", true)},
                       {"detect_positive", cx.attr_bool("detect_positive", true)}}))};
}

// A power of 2 as f8e8m0fnu, not the nearest one but the next above or below x (f32 or f64).
Operand next_power(NodeContext& cx, const Operand& x, bool up) {
  Operand nearest = cx.cast(cx.cast(x, f8e8m0fnu), cx.dtype(x));
  Operand beside = cx.op("mul", {nearest, cx.scalar_like(x, up ? 2 : 0.5)});
  Operand wrong = up ? cx.op("less", {nearest, x}) : cx.op("less", {x, nearest});
  return cx.op("where", {wrong, beside, nearest});
}

// Casts between numbers and text.
Operand cast_text(NodeContext& cx, const Operand& x, DataType to) {
  const DataType from = cx.dtype(x);
  if (from == to) return x;
  if (to == string_elements) {
    const bool narrow = from.bits < 16 && !from.is_bool();  // these have no text of their own
    const DataType wide = from.is_float() ? f32 : from.is_unsigned_int() ? u8 : i8;
    return cx.op("text_format", {narrow ? cx.cast(x, wide) : x});
  }
  if (to.is_bool()) cx.unsupported("a cast of strings to bool not implemented");
  const DataType read = to.bits >= 16 ? to : to.is_float() ? f32 : i64;
  return cx.cast(cx.op("text_parse", {x}, attrs({{"dtype", Any(read)}})), to);
}

// Casts to floats of 8 bits have attributes: `saturate` keeps what is out of range at the greatest
// number, where `cast` gives infinity or NaN; `round_mode` concerns float8e8m0 only.
Operand cast_with_attributes(NodeContext& cx, DataType to) {
  const bool saturate = cx.attr_bool("saturate", true);
  const std::string mode = cx.attr_string("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    cx.invalid(cat("round_mode=", mode), "up, down or nearest");
  Operand x = cx.in(0);
  if (to == string_elements || cx.dtype(x) == string_elements) return cast_text(cx, x, to);
  // ONNX leaves open what a float out of range becomes; its cases expect the low bits.
  if (to.is_int() && to.bits < 8) return cx.cast(cx.dtype(x).is_float() ? cx.cast(x, i32) : x, to);
  if (!to.is_float() || to.bits != 8 || cx.dtype(x) == to) return cx.cast(x, to);
  if (cx.dtype(x) != f64) x = cx.cast(x, f32);
  const FloatFormat& format = format_of(to);
  const double greatest = narrow_value(to, static_cast<uint16_t>(format.end_of_numbers() - 1));
  const bool powers = to == f8e8m0fnu;
  const double least = powers ? narrow_value(to, 0) : -greatest;
  if (saturate) {
    x = cx.op("clip", {x, cx.scalar_like(x, least), cx.scalar_like(x, greatest)});
  } else if (powers) {
    Operand small = cx.op("less", {x, cx.scalar_like(x, least)});
    x = cx.op("where", {small, cx.scalar_like(x, NAN), x});
  }
  if (powers && mode != "nearest") x = next_power(cx, x, mode == "up");
  return cx.cast(x, to);
}

Operands cast_to(NodeContext& cx) {
  if (!cx.has_attr("to")) cx.invalid("no attribute 'to'", "the element type to cast to");
  return {cast_with_attributes(cx, cx.attr_dtype("to", f32))};
}

// Before opset 6, the type was given as text.
Operands cast_to_named(NodeContext& cx) {
  std::string to = cx.attr_string("to", "");
  for (char& c : to) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (to == "float") to = "float32";
  if (to == "double") to = "float64";
  auto dtype = parse_dtype(to);
  if (!dtype) cx.unsupported(cat("to=", to, " not implemented"));
  if (*dtype == string_elements || cx.dtype(0) == string_elements)
    return {cast_text(cx, cx.in(0), *dtype)};
  return {cx.cast(cx.in(0), *dtype)};
}

Operands cast_like(NodeContext& cx) {
  return {cast_with_attributes(cx, cx.dtype(1))};
}

Operands identity(NodeContext& cx) {
  return {cx.in(0)};
}

Operands where(NodeContext& cx) {
  return {cx.op("where", {cx.in(0), cx.in(1), cx.in(2)})};
}

// Clip: bounds are attributes before opset 11, operands since.
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
    // Some exporters write bounds of rank 1.
    return cx.has(i) ? cx.reshape(cx.in(i), {}) : Operand();
  };
  if (!cx.has(1) && !cx.has(2)) return {cx.in(0)};
  return {cx.op("clip", {cx.in(0), bound(1), bound(2)})};
}

// A boolean is a byte of 0 or 1: a cast keeps it, and any other byte becomes true.
Operands bit_cast(NodeContext& cx) {
  if (!cx.has_attr("to")) cx.invalid("no attribute 'to'", "the element type to cast to");
  const DataType from = cx.dtype(0), to = cx.attr_dtype("to", f32);
  if (from.bits != to.bits) {
    cx.invalid(cat("to=", to_text(to), " for an operand of ", to_text(from)),
               cat("a type of ", int{from.bits}, " bits"));
  }
  if (from == to || from.is_bool() || to.is_bool()) return {cx.cast(cx.in(0), to)};
  return {cx.op("bit_cast", {cx.in(0)}, attrs({{"dtype", Any(to)}}))};
}

// Operators with the same meaning as one of graph IR.
struct Same {
  std::string_view op;
  int64_t since;
  Translate translate;
  const char* ours;
};
constexpr Same kSame[] = {
    {"Neg", 1, unary, "neg"},
    {"Abs", 1, unary, "abs"},
    {"Sign", 9, unary, "sign"},
    {"Floor", 1, unary, "floor"},
    {"Ceil", 1, unary, "ceil"},
    {"Round", 11, unary, "round"},
    {"Sqrt", 1, unary, "sqrt"},
    {"Reciprocal", 1, unary, "reciprocal"},
    {"Exp", 1, unary, "exp"},
    {"Log", 1, unary, "log"},
    {"Erf", 9, unary, "erf"},
    {"Sin", 7, unary, "sin"},
    {"Cos", 7, unary, "cos"},
    {"Tan", 7, unary, "tan"},
    {"Asin", 7, unary, "asin"},
    {"Acos", 7, unary, "acos"},
    {"Atan", 7, unary, "atan"},
    {"Sinh", 9, unary, "sinh"},
    {"Cosh", 9, unary, "cosh"},
    {"Asinh", 9, unary, "asinh"},
    {"Acosh", 9, unary, "acosh"},
    {"Atanh", 9, unary, "atanh"},
    {"Not", 1, decided, "logical_not"},
    {"BitwiseNot", 18, unary, "bitwise_not"},
    {"Add", 1, binary, "add"},
    {"Sub", 1, binary, "sub"},
    {"Mul", 1, binary, "mul"},
    {"Equal", 1, decided, "equal"},
    {"Less", 1, decided, "less"},
    {"LessOrEqual", 12, decided, "less_equal"},
    {"Greater", 1, decided, "greater"},
    {"GreaterOrEqual", 12, decided, "greater_equal"},
    {"And", 1, decided, "logical_and"},
    {"Or", 1, decided, "logical_or"},
    {"Xor", 1, decided, "logical_xor"},
    {"BitwiseAnd", 18, binary, "bitwise_and"},
    {"BitwiseOr", 18, binary, "bitwise_or"},
    {"BitwiseXor", 18, binary, "bitwise_xor"},
    {"Max", 1, variadic, "maximum"},
    {"Min", 1, variadic, "minimum"},
    {"Sum", 1, variadic, "add"},
};

const char* ours(const NodeContext& cx) {
  const auto* row = std::ranges::find(kSame, std::string_view(cx.node().op), &Same::op);
  TENON_ASSERT(row != std::end(kSame), "no operator of ours for ", cx.node().op);
  return row->ours;
}

}  // namespace

void register_elementwise(OpTable& t) {
  for (const Same& row : kSame) t.add(row.op, row.since, row.translate);
  t.add("IsNaN", 9, is_nan);
  t.add("IsInf", 10, is_inf);
  t.add("Div", 1, divide_elements);
  t.add("Mod", 10, mod_elements);
  t.add("Pow", 1, pow_elements);
  t.add("BitShift", 11, bit_shift);
  t.add("Mean", 1, mean);
  t.add("Cast", 1, cast_to_named);
  t.add("Cast", 6, cast_to);
  t.add("CastLike", 15, cast_like);
  t.add("BitCast", 26, bit_cast);
  t.add("Identity", 1, identity);
  t.add("Where", 9, where);
  t.add("Clip", 1, clip_attributes);
  t.add("Clip", 11, clip);
}

}  // namespace tenon::onnx
