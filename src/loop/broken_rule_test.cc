// Nodes that the functions of expr.h don't make, but a file may hold.
#include "loop/broken_rule.h"

#include <gtest/gtest.h>

#include <string>

#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n");
const Ref<const Buffer> x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
const Ref<const Var> i = var("i", i64);

template <class T>
ExprRef made(DataType dtype, const auto& fill) {
  auto e = make<T>();
  e->dtype = dtype;
  fill(*e);
  return e;
}

ExprRef literal_of(DataType dtype, int64_t bits) {
  return made<Literal>(dtype, [&](Literal& e) { e.bits = bits; });
}
ExprRef sum_of(DataType dtype, const ExprRef& a, const ExprRef& b) {
  return made<Binary>(dtype, [&](Binary& e) {
    e.op = BinaryOp::kAdd;
    e.a = a;
    e.b = b;
  });
}
ExprRef select_of(const ExprRef& condition, const ExprRef& yes, const ExprRef& no) {
  return made<Select>(f32, [&](Select& e) {
    e.condition = condition;
    e.if_true = yes;
    e.if_false = no;
  });
}

std::string rule(const ExprRef& e) {
  return std::string(broken_rule(*e));
}

TEST(BrokenRule, LiteralsAreValuesOfTheirType) {
  EXPECT_EQ(rule(literal_of(i8, -128)), "");
  EXPECT_EQ(rule(literal_of(u64, -1)), "");
  EXPECT_EQ(rule(literal(f32, NAN)), "");
  for (const ExprRef& e : {literal_of(i8, 128), literal_of(boolean, 2), literal_of(u8, -1),
                           literal_of(f32, float_bits(0.1))}) {
    EXPECT_EQ(rule(e), "a literal is a value of its dtype");
  }
  for (DataType t : {DataType(), DataType(kDLFloat, 32, 4), DataType(kDLComplex, 32)}) {
    EXPECT_EQ(rule(literal_of(t, 0)),
              "a value is an integer, a float, a boolean or a complex number");
  }
}

TEST(BrokenRule, ComplexNumbersAreOnlyMoved) {
  for (const DataType t : {c64, c128}) {
    const ExprRef x = var("x", t);
    EXPECT_EQ(rule(literal_of(t, 0)), "");
    EXPECT_EQ(rule(literal_of(t, 1)), "a literal is a value of its dtype");
    EXPECT_EQ(rule(select(binary(BinaryOp::kLt, i, index(1)), x, zero(t))), "");
    EXPECT_EQ(rule(sum_of(t, x, x)),
              "an operator's dtype follows from its operands', which have the same");
    EXPECT_EQ(rule(made<Cast>(f32, [&](Cast& e) { e.a = x; })),
              "complex numbers are not converted");
    EXPECT_EQ(rule(made<Cast>(t, [&](Cast& e) { e.a = i; })), "complex numbers are not converted");
  }
  EXPECT_EQ(rule(made<Cast>(f64,
                            [&](Cast& e) {
                              e.a = var("x", c64);
                              e.keeps_bits = true;
                            })),
            "");
}

TEST(BrokenRule, BitsAreReadAsANumberOfTheirWidth) {
  auto bits_as = [](DataType dtype, const ExprRef& a) {
    return made<Cast>(dtype, [&](Cast& e) {
      e.a = a;
      e.keeps_bits = true;
    });
  };
  EXPECT_EQ(rule(bits_as(i32, literal(f32, 1))), "");
  const ExprRef truth = literal_int(boolean, 1);
  for (const ExprRef& e :
       {bits_as(i64, literal(f32, 1)), bits_as(u8, truth), bits_as(boolean, literal_int(u8, 1))}) {
    EXPECT_EQ(rule(e), "bits are read as another number of their width");
  }
}

TEST(BrokenRule, OperatorsHaveTheTypeThatFollowsFromTheirOperands) {
  const ExprRef number = literal(f32, 1), integer = index(1), truth = less(number, number);
  EXPECT_EQ(rule(sum_of(f32, number, number)), "");
  for (const ExprRef& e : {sum_of(i64, number, number), sum_of(f32, number, integer),
                           sum_of(boolean, truth, truth), sum_of(f32, integer, integer)}) {
    EXPECT_EQ(rule(e), "an operator's dtype follows from its operands', which have the same");
  }
  auto exp_of = [](DataType dtype, const ExprRef& a) {
    return made<Unary>(dtype, [&](Unary& e) {
      e.op = UnaryOp::kExp;
      e.a = a;
    });
  };
  EXPECT_EQ(rule(exp_of(f32, number)), "");
  for (const ExprRef& e : {exp_of(f64, number), exp_of(i64, integer)}) {
    EXPECT_EQ(rule(e), "an operator's dtype follows from its operand's");
  }
}

TEST(BrokenRule, ChoicesAreBetweenValuesOfOneType) {
  const ExprRef number = literal(f32, 1), integer = index(1);
  const ExprRef truth = binary(BinaryOp::kLt, i, index(1));
  EXPECT_EQ(rule(select_of(truth, number, number)), "");
  for (const ExprRef& e : {select_of(integer, number, number), select_of(truth, integer, number),
                           select_of(truth, number, integer)}) {
    EXPECT_EQ(rule(e), "a select chooses by a boolean between values of its dtype");
  }
}

TEST(BrokenRule, IndicesAreIntegers) {
  auto load_of = [](DataType dtype, const ExprRef& at) {
    return made<Load>(dtype, [&](Load& e) {
      e.buffer = x;
      e.indices = {at};
    });
  };
  EXPECT_EQ(rule(load_of(f32, i)), "");
  EXPECT_EQ(rule(load_of(f64, i)), "a load has the buffer's dtype");
  EXPECT_EQ(rule(load_of(f32, literal(f32, 0))), "indices are i64");
  EXPECT_EQ(rule(made<CheckedIndex>(i64, [](CheckedIndex& e) { e.index = literal(f32, 0); })),
            "indices are i64");
  EXPECT_EQ(rule(made<DimValue>(i8, [](DimValue&) {})), "a size is an i64");
}

// Both kinds of kernel are checked, and statements too.
TEST(BrokenRule, IsFoundInKernels) {
  const ExprRef wrong = sum_of(f32, at(x, {i}), index(1));
  auto found = [](const std::function<void()>& check) -> std::string {
    try {
      check();
    } catch (const Error& e) {
      return e.render();
    }
    return {};
  };
  auto loop = [&](const StmtRef& body) {
    return kernel("k", {x}, {y}, nest(i, index(0), dim_value(n), ForKind::kSerial, body));
  };
  const StmtRef good = put(y, {i}, at(x, {i}));
  EXPECT_EQ(found([&] { check(*loop(good)); }), "");
  EXPECT_NE(found([&] { check(*loop(put(y, {i}, wrong))); }).find("an operator's dtype follows"),
            std::string::npos);
  EXPECT_NE(found([&] { check(*loop(when(index(1), good))); }).find("a condition is a boolean"),
            std::string::npos);
  auto bound = make<Let>();
  bound->var = var("v", f32);
  bound->value = index(1);
  bound->body = good;
  EXPECT_NE(found([&] { check(*loop(bound)); }).find("a variable has the dtype of its value"),
            std::string::npos);
  const auto stage =
      map_stage(y, [&](const Indices& at_y) { return sum_of(f32, at(x, at_y), index(1)); });
  EXPECT_NE(found([&] { compute_of({x}, {stage}, {y}); }).find("an operator's dtype follows"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::loop
