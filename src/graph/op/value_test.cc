// Shape arithmetic stays symbolic: the values that a program computes from sizes are known at
// compile time.
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

Dim sym(const char* name) {
  return Dim::symbol(name);
}

TypeRef known(const std::vector<Dim>& values) {
  return with_values(tensor_type(i64, {Dim(static_cast<int64_t>(values.size()))}), values);
}
TypeRef known_scalar(const Dim& value) {
  return with_values(tensor_type(i64, {}), {value});
}

// The values that the result type of a call carries, as text, or "unknown".
std::string values(const std::string& name, const std::vector<TypeRef>& operands,
                   const Attrs& given = {}) {
  register_operators();
  TypeRef type = infer_call(make_call(name, operands, given));
  if (const auto* s = type_as<ScalarType>(type))
    return s->value_known ? to_text(s->value) : "unknown";
  const auto* t = type_as<TensorType>(type);
  if (!t || !t->value_known) return "unknown";
  std::vector<std::string> parts;
  for (const Dim& d : t->values) parts.push_back(to_text(d));
  return tenon::join(parts, ", ");
}

TEST(Value, OfAShape) {
  TypeRef x = tensor_type(f32, {sym("b"), sym("s"), 768});
  EXPECT_EQ(values("shape_of", {x}), "b, s, 768");
  EXPECT_EQ(values("shape_of", {x}, attrs({{"start", 1}, {"end", -1}})), "s");
  EXPECT_EQ(values("size_of", {x}), "768*b*s");
}

TEST(Value, OfMovement) {
  TypeRef shape = known({sym("b"), sym("s"), 768});
  EXPECT_EQ(values("gather", {shape, known_scalar(1)}), "s");
  EXPECT_EQ(values("gather", {shape, known({-1, 0})}), "768, b");
  EXPECT_EQ(values("gather", {shape, known({3})}), "unknown");
  EXPECT_EQ(values("slice", {shape},
                   attrs({{"starts", attr_dims({Dim(2)})},
                          {"sizes", attr_dims({Dim(2)})},
                          {"steps", attr_ints({-1})}})),
            "768, s");
  EXPECT_EQ(values("concat", {shape, known({12})}, attrs({{"axis", 0}})), "b, s, 768, 12");
  EXPECT_EQ(values("reshape", {known_scalar(sym("n"))}, attrs({{"shape", attr_dims({Dim(1)})}})),
            "n");
  EXPECT_EQ(values("reshape", {known({sym("n")})}, attrs({{"shape", attr_dims({})}})), "n");
  EXPECT_EQ(values("expand", {known_scalar(7)}, attrs({{"shape", attr_dims({Dim(2)})}})), "7, 7");
  EXPECT_EQ(values("full", {known_scalar(1)}, attrs({{"shape", attr_dims({Dim(3)})}})), "1, 1, 1");
  EXPECT_EQ(values("tile", {known({sym("n")})}, attrs({{"repeats", attr_dims({Dim(2)})}})), "n, n");
  EXPECT_EQ(values("range", {known_scalar(sym("n")), known_scalar(2)}, attrs({{"count", 3}})),
            "n, n + 2, n + 4");
}

TEST(Value, OfSplitParts) {
  register_operators();
  TypeRef type =
      infer_call(make_call("split", {known({sym("a"), sym("b"), sym("c")})},
                           attrs({{"axis", 0}, {"sizes", attr_dims({Dim(1), Dim(2)})}})));
  const auto* parts = type_as<TupleType>(type);
  EXPECT_EQ(type_as<TensorType>(parts->fields[1])->values[1], sym("c"));
}

TEST(Value, OfArithmetic) {
  TypeRef n = known_scalar(sym("n"));
  auto with = [&](const char* op, int64_t k) { return values(op, {n, known_scalar(k)}); };
  EXPECT_EQ(with("add", 1), "n + 1");
  EXPECT_EQ(with("sub", 1), "n - 1");
  EXPECT_EQ(with("mul", 3), "3*n");
  EXPECT_EQ(with("div", 2), "floordiv(n, 2)");
  EXPECT_EQ(with("floor_div", 2), "floordiv(n, 2)");
  EXPECT_EQ(with("mod", 2), "mod(n, 2)");
  EXPECT_EQ(with("minimum", 8), to_text(min(sym("n"), 8)));
  EXPECT_EQ(with("maximum", 8), to_text(max(sym("n"), 8)));
  EXPECT_EQ(values("neg", {n}), "-n");
  EXPECT_EQ(values("cast", {n}, attrs({{"dtype", i32}})), "n");
  EXPECT_EQ(values("cast", {n}, attrs({{"dtype", f32}})), "unknown");
  EXPECT_EQ(values("cast", {n}, attrs({{"dtype", i8}})), "unknown");
  EXPECT_EQ(values("reduce_prod", {known({sym("b"), 3, 4})}, attrs({{"axes", attr_ints({0})}})),
            "12*b");
  EXPECT_EQ(values("reduce_sum", {known({sym("b"), 3})}, attrs({{"axes", attr_ints({0})}})),
            "b + 3");
  EXPECT_EQ(values("range_count", {known_scalar(0), n, known_scalar(2)}), "floordiv(n + 1, 2)");
}

// Division truncates towards zero and floordiv doesn't, so they agree only on nonnegative numbers.
TEST(Value, OfADivisionIsKnownWhereItIsRight) {
  EXPECT_EQ(values("div", {known_scalar(-7), known_scalar(2)}), "-3");
  EXPECT_EQ(values("floor_div", {known_scalar(-7), known_scalar(2)}), "-4");
  EXPECT_EQ(values("rem", {known_scalar(-7), known_scalar(2)}), "-1");
  EXPECT_EQ(values("mod", {known_scalar(-7), known_scalar(2)}), "1");
  EXPECT_EQ(values("div", {known_scalar(sym("n") - 5), known_scalar(2)}), "unknown");
  EXPECT_EQ(values("div", {known_scalar(1), known_scalar(0)}), "unknown");
  EXPECT_EQ(values("add", {known_scalar(INT64_MAX), known_scalar(1)}), "unknown");
}

// A type that might not hold an element carries none, except for i32, whose range is checked.
TEST(Value, OfTypesThatHoldIt) {
  TypeRef n = known_scalar(sym("n")), less = known_scalar(sym("n") - 1);
  TypeRef digit = known_scalar(mod(sym("n"), 10));
  auto cast = [](const TypeRef& x, DataType to) {
    return values("cast", {x}, attrs({{"dtype", to}}));
  };
  EXPECT_EQ(cast(n, u64), "n");
  EXPECT_EQ(cast(less, u64), "unknown");
  EXPECT_EQ(cast(n, u32), "unknown");
  EXPECT_EQ(cast(digit, u8), "mod(n, 10)");
  EXPECT_EQ(cast(digit, i8), "mod(n, 10)");
  EXPECT_EQ(cast(less, i32), "n - 1");
  EXPECT_EQ(cast(known_scalar(sym("n") + INT32_MAX + 1), i32), "unknown");
}

TEST(Value, OfI32RequiresThatItFits) {
  register_operators();
  Builder b;
  b.at(Span::node("test"));
  Operand x = b.param("x", tensor_type(f32, {sym("n"), sym("m")}));
  Operand shape = b.op("cast", {b.op("shape_of", {x})}, attrs({{"dtype", i32}}));
  Operand same = b.op("reshape", {shape}, attrs({{"shape", attr_dims({Dim(2), Dim(1)})}}));
  Operand count = b.op("reduce_prod", {shape}, attrs({{"axes", attr_ints({0})}}));
  FunctionRef f = b.finish("f", b.tuple({same, count}), {});
  std::vector<std::string> checks;
  for (const auto& binding : f->body->bindings) {
    if (const auto* c = binding->value.as<Check>()) checks.push_back(to_text(c->left));
  }
  EXPECT_EQ(checks, (std::vector<std::string>{"n", "m", "m*n"}));
}

TEST(Value, OfDecidedConditions) {
  TypeRef n = known_scalar(sym("n"));
  EXPECT_EQ(values("equal", {n, n}), "1");
  EXPECT_EQ(values("equal", {n, known_scalar(-1)}), "0");
  EXPECT_EQ(values("equal", {n, known_scalar(3)}), "unknown");
  EXPECT_EQ(values("less", {n, known_scalar(0)}), "0");
  EXPECT_EQ(values("greater_equal", {n, known_scalar(0)}), "1");
  TypeRef yes = with_values(tensor_type(boolean, {2}), {1, 0});
  EXPECT_EQ(values("where", {yes, known({sym("a"), 2}), known({7, sym("b")})}), "a, b");
  // The idiom of Expand in exported models: where(shape == -1, ones, shape).
  TypeRef shape = known({sym("b"), -1});
  EXPECT_EQ(values("equal", {shape, known_scalar(-1)}), "0, 1");
}

TEST(Value, OfAResolvedReshape) {
  TypeRef x = known({sym("b"), sym("s"), 768});
  EXPECT_EQ(values("reshape_dims", {known({0, 0, 12, -1}), x}), "b, s, 12, 64");
  EXPECT_EQ(values("reshape_dims", {known({-1, 768}), x}), "b*s, 768");
}

}  // namespace
}  // namespace tenon::graph
