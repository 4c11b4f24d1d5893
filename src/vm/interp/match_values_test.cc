#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/array.h"
#include "object/module.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

// The error when a function of that result type returns the value; "" if it fits.
std::string refusal(const std::string& type, const Any& value) {
  Machine m(program_of(assemble(cat("func @f(x: any) -> ", type, " {\n  ret %0!\n}"))));
  try {
    m.call("f", value);
    return "";
  } catch (const Error& e) {
    return e.render();
  }
}

TEST(Result, MustBeWhatTheSignatureSays) {
  Machine m(program_of(assemble("func @unset() -> i64 {\n  ret %0\n}")));
  EXPECT_EQ(failure_of([&] { m.call("unset"); }),
            "error: the result of function 'unset' doesn't match its signature\n"
            "  found     None\n"
            "  expected  i64");
  EXPECT_EQ(refusal("(i64, bool)", Any(Array<Any>{Any(1), Any(1.5)})),
            "error: result 1 of function 'f' doesn't match its signature\n"
            "  found     float\n"
            "  expected  bool");
}

TEST(Arguments, OfScalarsMustBeWhatTheSignatureSays) {
  Machine m(
      program_of(assemble("func @i(n: i64) -> i64 {\n  ret %0\n}\n"
                          "func @b(c: bool) -> bool {\n  ret %0\n}\n"
                          "func @f(x: f32) -> f32 {\n  ret %0\n}")));
  EXPECT_EQ(failure_of([&] { m.call("i", 2.5); }),
            "error: input 'n' does not fit <memory>\n"
            "  found     float\n"
            "  expected  i64");
  const Any values[] = {Any(1), Any(true), Any(2.5)};
  const char* functions[] = {"i", "b", "f"};
  for (size_t f = 0; f < 3; ++f) {
    for (size_t v = 0; v < 3; ++v) {
      const std::string failure = failure_of([&] { m.call(functions[f], values[v]); });
      EXPECT_EQ(failure == "no error", f == v) << functions[f] << ": " << failure;
    }
    EXPECT_THAT(failure_of([&] { m.call(functions[f], Any(String("1"))); }),
                testing::HasSubstr("does not fit"));
  }
}

TEST(Arguments, ThatAreArraysOfNumbersOrStringsHaveSuchElements) {
  Machine m(
      program_of(assemble("func @f(xs: array[f64]) -> i64 {\n  ret 1\n}\n"
                          "func @s(names: array[string]) -> i64 {\n  ret 1\n}\n"
                          "func @any(xs: array[any]) -> i64 {\n  ret 1\n}")));
  EXPECT_EQ(failure_of([&] {
              m.call("f", Array<Any>{Any(1.5), Any(2)});
            }),
            "error: element 1 of input 'xs' does not fit <memory>\n"
            "  found     int\n"
            "  expected  f64");
  EXPECT_EQ(failure_of([&] { m.call("s", Array<Any>{Any(Bytes("ann"))}); }),
            "error: element 0 of input 'names' does not fit <memory>\n"
            "  found     bytes\n"
            "  expected  string");
  EXPECT_EQ(m.call("f", Array<Any>{Any(1.5), Any(2.0)}).as<int64_t>(), 1);
  EXPECT_EQ(m.call("s", Array<Any>{Any(String("a name that is not short"))}).as<int64_t>(), 1);
  EXPECT_EQ(m.call("any", Array<Any>{Any(1), Any(1.5)}).as<int64_t>(), 1);
}

TEST(Arguments, OfShapesHaveNoNegativeSizes) {
  Machine m(
      program_of(assemble("func @f(s: shape[n, 3]) -> i64 {\n"
                          "  match_shape %0, ->%1, =3\n  ret %1\n}")));
  EXPECT_EQ(m.call("f", Shape({0, 3})).as<int64_t>(), 0);
  EXPECT_THAT(failure_of([&] {
                m.call("f", Shape({-2, 3}));
              }),
              testing::AllOf(testing::HasSubstr("input 's' does not fit"),
                             testing::HasSubstr("shape[-2, 3]   axis 0")));
}

TEST(Arguments, OfNarrowScalarsAreInTheirRangeAndFloatsAreRounded) {
  Machine m(
      program_of(assemble("func @i(n: i8) -> i8 {\n  ret %0\n}\n"
                          "func @u(n: u64) -> u64 {\n  ret %0\n}\n"
                          "func @h(x: f16) -> f16 {\n  ret %0\n}\n"
                          "func @f(x: f32) -> f32 {\n  ret %0\n}")));
  EXPECT_EQ(m.call("i", -128).as<int64_t>(), -128);
  EXPECT_EQ(m.call("u", -1).as<int64_t>(), -1);
  EXPECT_EQ(failure_of([&] { m.call("i", 128); }),
            "error: input 'n' does not fit <memory>\n"
            "  found     128\n"
            "  expected  i8");
  EXPECT_THAT(failure_of([&] { m.call("h", 70000.0); }), testing::HasSubstr("found     70000"));
  EXPECT_EQ(m.call("h", 0.1).as<double>(), 0.0999755859375);
  EXPECT_EQ(m.call("f", 0.1).as<double>(), static_cast<double>(0.1f));
  EXPECT_EQ(m.call("h", INFINITY).as<double>(), INFINITY);
}

TEST(Arguments, OfTuplesHaveTheNumbersOfTheirParts) {
  Machine m(
      program_of(assemble("func @f(p: (i8, (f32, string))) -> any {\n  %0 = get_field %0!, 1\n"
                          "  %0 = get_field %0!, 0\n  ret %0\n}")));
  const auto call = [&](const Any& number, const Any& inner, const Any& text) {
    return m.call("f", Array<Any>{number, Any(Array<Any>{inner, text})});
  };
  EXPECT_EQ(call(3, 0.1, String("a")).as<double>(), static_cast<double>(0.1f));
  EXPECT_EQ(failure_of([&] { call(3.5, 0.1, String("a")); }),
            "error: input 'p' does not fit <memory>\n"
            "  found     float\n"
            "  expected  i8");
  EXPECT_THAT(failure_of([&] { call(300, 0.1, String("a")); }),
              testing::HasSubstr("found     300"));
  EXPECT_THAT(failure_of([&] { call(3, 1, String("a")); }), testing::HasSubstr("expected  f32"));
  EXPECT_THAT(failure_of([&] { call(3, 1.5, Any(2)); }), testing::HasSubstr("expected  string"));
  EXPECT_THAT(failure_of([&] { m.call("f", Array<Any>{Any(1)}); }),
              testing::HasSubstr("an array of 1 value"));
}

TEST(Result, IsComparedInKindDtypeRankAndKnownSizes) {
  const Any tensor = Any(Tensor::empty({2, 3}, f32));
  for (const char* type :
       {"any", "tensor[2, 3; f32]", "tensor[n, 3; f32]", "tensor[rank=2; f32]", "tensor[*; f32]"}) {
    EXPECT_EQ(refusal(type, tensor), "") << type;
  }
  for (const char* type : {"i64", "tensor[2, 3; f64]", "tensor[2, 4; f32]", "tensor[rank=3; f32]",
                           "shape[2, 3]", "array[i64]", "()", "(tensor[2, 3; f32])"}) {
    EXPECT_THAT(refusal(type, tensor), testing::HasSubstr("found     tensor[2, 3; f32]")) << type;
  }
  const int64_t dims[] = {2, 3};
  EXPECT_EQ(refusal("shape[n, 3]", Any(Shape(dims))), "");
  EXPECT_THAT(refusal("shape[n]", Any(Shape(dims))), testing::HasSubstr("found     shape[2, 3]"));
  EXPECT_EQ(refusal("f32", Any(1.5)), "");
  EXPECT_NE(refusal("f32", Any(1)), "");
  EXPECT_EQ(refusal("array[i64]", Any(Array<Any>{Any(1)})), "");
  EXPECT_EQ(refusal("()", Any()), "");
  EXPECT_THAT(refusal("list[i64]", Any(Array<Any>{Any(1)})),
              testing::HasSubstr("an array of 1 value"));
  EXPECT_THAT(refusal("list[i64]", Any(Shape(dims))), testing::HasSubstr("shape[2, 3]"));
}

}  // namespace
}  // namespace tenon::vm
