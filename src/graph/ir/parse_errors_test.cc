// What the parser says of wrong text, with what it expects; test/golden/graph/invalid has what
// people write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "graph/ir/operators_testing.h"
#include "graph/ir/text.h"
#include "graph/ir/typed_text.h"
#include "object/reflect.h"
#include "support/error_testing.h"

namespace tenon::graph {
namespace {

using ::testing::HasSubstr;

struct BadText {
  std::string text;
  const char* message;
  const char* expected = "";
};

class ParseErrors : public ::testing::Test {
 protected:
  ParseErrors() {
    register_test_operators();
    register_graph_types();
  }
  static void expect_errors(std::span<const BadText> cases, std::string_view before,
                            std::string_view after) {
    for (const BadText& bad : cases) {
      const std::string whole = cat(before, bad.text, after);
      const std::string error = failure_of([&] { parse_module(whole, "t.tn"); });
      EXPECT_THAT(error, HasSubstr(bad.message)) << bad.text.substr(0, 200);
      EXPECT_THAT(error, HasSubstr(bad.expected)) << bad.text.substr(0, 200);
    }
  }
};

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST_F(ParseErrors, OfTokens) {
  const BadText cases[] = {
      {"@f # x", "this character is not part of the language", "// before a comment"},
      {"'x'", "this character is not part of the language", "double quotes around a string"},
      {"%", "a name is missing after '%'", "letters or digits"},
      {"\"x", "a string without an end", "a closing \""},
      {"\"x\n\"", "a string without an end", "a closing \""},
      {R"("\q")", "an unknown escape in a string", R"(\n, \t, \r, \", \\ or \x1b)"},
      {R"("\x1g")", "an unknown escape in a string", R"(\n, \t, \r, \", \\ or \x1b)"}};
  expect_errors(cases, "fn @main() -> i64 { ", " }");
}

TEST_F(ParseErrors, OfItems) {
  const BadText cases[] = {
      {"import \"std/list.tn\"", "the import has no name", "as NAME, for calls of @NAME.function"},
      {"type i64 { A }", "this word has another meaning", "another name"},
      {"type t[i64] { A }", "the name of a type parameter is missing", "a word such as T"},
      {"type t { a }", "a constructor starts with a capital", "a name such as Some"},
      {"type t { }", "the type t has no constructor", "at least one"},
      {"type t { A, A }", "there is a constructor A already"},
      {"type option { A }", "the prelude has a type option"},
      {"fn @f() -> i64", "'{' is missing", "a body"},
      {"fn @f() -> i64 i64 { 1 }", "'{' is missing before a function's body", "'{'"},
      {"fn @f() -> i64 { 1 } fn @f() -> i64 { 1 }", "fn f is already defined", "another name"},
      {"fn @f() -> i64 { 1", "this block has no end", "a closing '}'"}};
  expect_errors(cases, "", "");
}

TEST_F(ParseErrors, OfTypes) {
  const BadText cases[] = {
      {"", "a type is missing", "tensor[...], i64, (T, U), fn(T) -> U"},
      {"i65", "there is no type 'i65'", "a type such as i64 or tensor[n; f32]"},
      {"option", "the type option has the wrong number of type arguments", "1, not 0"},
      {"tensor[+; f32]", "a size is missing", "a number or a symbol"},
      {"tensor[if; f32]", "'if' is a word of the language",
       "a symbol; a symbol of that name is written \"if\""},
      {"tensor[\"a\\x01\"; f32]", "a symbol has no control characters", "another name"},
      {"tensor[f(1, 2); f32]", "there is no function of sizes 'f'", "floordiv"},
      {"tensor[size_of(1); f32]", "size_of has no value here", "only there is a value known"},
      {"tensor[-1; f32]", "a size is not negative"},
      {"tensor[n, f32]", "a comma stands before the element type", "';', as in tensor[n, 4; f32]"},
      {"tensor[n; x]", "there is no element type 'x'", "or string"},
      {"tensor[n; 1]", "an element type is missing", "or string"},
      {"tensor[rank=33; f32]", "this rank is too large", "0 to 32"},
      {"shape[rank=33]", "this rank is too large", "0 to 32"},
      {cat("tensor[", repeated("1, ", 32), "1; f32]"), "this tensor has too many dimensions",
       "at most 32"},
      {cat("shape[", repeated("1, ", 32), "1]"), "this shape has too many sizes", "at most 32"},
      {cat("tensor[1", repeated(" + 1", 2048), "; f32]"), "this size has too many terms",
       "at most 2048"},
      {"tensor[n; f32; device=-1]", "a device can't be negative"},
      {"tensor[9223372036854775807 + 1; f32]", "overflow"},
      {"tensor[99999999999999999999; f32]", "is too large", "an integer of 64 bits"},
      {"opaque[x]", "a key in quotes"},
      {"tensor[2; i64] = [1]", "can't have these elements",
       "an integer tensor of rank 0 or 1 with as many elements"},
      {"f32 = [1]", "can't have these elements", "one element of an i64"},
      {"tensor[n; f32; dev]", "'device' is missing", "device=1"},
      {"fn[T, T](T) -> T", "the type parameter T is already defined"}};
  expect_errors(cases, "fn @main(%x: ", ") -> i64 { 1 }");
}

TEST_F(ParseErrors, AProductOfSizesHasAMostNumberOfTerms) {
  std::string sum = "a0", other = "b0";
  for (int i = 1; i < 60; ++i) {
    sum += cat(" + a", i);
    other += cat(" + b", i);
  }
  EXPECT_THAT(failure_of([&] { parse_size(cat("(", sum, ") * (", other, ")")); }),
              testing::AllOf(HasSubstr("this size has too many terms"), HasSubstr("at most 2048")));
}

TEST_F(ParseErrors, OfConstants) {
  const BadText cases[] = {
      {"nan(1)", "the bits of a NaN are missing", "as in nan(0x7fc00001)"},
      {"-nan", "a NaN's sign is part of its bits", "nan(0x...)"},
      {"f32(nan(0x1))", "these bits are not a NaN"},
      {"f64(nan(0x1))", "these bits are not a NaN"},
      {"tensor[1; f32]{nan(0x1ffffffff)}", "these bits don't fit the type"},
      {"tensor[1; f32]{nan(0x1)}", "these bits are not a NaN of f32"},
      {"1e999", "1e999 is too large for a float", "inf"},
      {"f32(x)", "a number is missing", "such as 0.5, -2, inf or nan"},
      {"f32(1e39)", "this number is too large for f32", "f64("},
      {"i32(99999999999)", "99999999999 doesn't fit i32"},
      {"tensor[1; u64]{99999999999999999999}", "this number doesn't fit u64"},
      {"tensor[1; u64]{-1}", "-1 doesn't fit u64"},
      {"tensor[1; bool]{256}", "256 doesn't fit bool"},
      {"tensor[n; f32]{1}", "a constant can't be tensor[n; f32]", "numbers as dimensions"},
      {"tensor[1; f32]{}", "this constant has fewer elements than its type says", "1, not 0"},
      {"tensor[1; f32]{1, 2}", "this constant has more elements than its type says", "1"},
      {"tensor[999999999; f32]{1}", "this constant has fewer elements than its type says"},
      {"tensor[1; f32]{...} as \"w\"", "the elements of this constant \"w\" are left out",
       "a text that was written with its weight file, or the elements"},
      {"tensor[1; string]{\"\\xff\"}", "this string is not valid UTF-8"},
      {"tensor[1; f32] from \"w\"", "this text names no weight file",
       "`weights \"FILE\"` before the first function"},
      {"shape[-1]", "a size is not negative"},
      {cat("shape[", repeated("1, ", 32), "1]"), "this shape has too many sizes", "at most 32"}};
  expect_errors(cases, "fn @main() -> i64 { %y = ", "\n 1 }");
}

TEST_F(ParseErrors, OfStatements) {
  const BadText cases[] = {
      {"", "the block has no result", "a variable, a constant, () or a call"},
      {"check n < m 1", "a condition is missing", "==, <= or ~"},
      {"%y = 1 at(\"f\" nodes \"a\") 1", "a comma is missing", "','"},
      {"%y = add(%n, 1) at() 1", "a place is empty", "at(\"file\", 1, 1) or at(nodes \"/name\")"},
      {"%y, %z = add(%n, 1) 1", "2 names for a value of type i64"},
      {"%y = [1] 1", "a right-hand side is missing",
       "a call, name, constant, tuple, if, loop, match or fn"},
      {"%y = (1, 2) %z = %y.1e5 1", "a field's number is missing", "an integer"},
      {"%y = (1, 2) %z = %y.1.99999999999999999999 1", "a field's number is missing", "an integer"},
      {"%y = add(fn(%a: i64) -> i64 { 1 }, 1) 1",
       "a function can't be nested in another expression", "%f = fn..."},
      {"%y = add(mul(1, 2), 1) 1", "the call of mul can't be nested in another expression",
       "bind the call to a variable first"},
      {"%y = add([1], 1) 1", "an operand is missing",
       "a variable, a constant, or () for an absent one"},
      {"%y = if true { 1 } 1", "'else' is missing", "else { ... }: every `if` gives a value"},
      {"%y = loop (%i: i64 = 0) { 1 } 1", "'while' is missing", "while { condition } { body }"},
      {"%y = fn[T](%a: T) -> T { %a } 1", "a function literal has no type parameters",
       "the type parameters of the function around it, or a function of the module"},
      {"%y = fn(%a: i64) -> tensor[q; f32] { %a } 1", "the symbol q is not bound here"},
      {"%y = @main(a=1) 1", "a function takes no attributes", "operands"}};
  expect_errors(cases, "fn @main(%n: i64) -> i64 { ", " }");
}

TEST_F(ParseErrors, OfAttributes) {
  for (const char* text : {"word", "=", "+"}) {
    EXPECT_THAT(failure_of([&] { parse_attribute(AttrKind::kInt, text); }),
                HasSubstr("error: attribute:1:1:"))
        << text;
  }
  EXPECT_THAT(failure_of([] { parse_attribute(AttrKind::kInt, "word"); }),
              testing::AllOf(HasSubstr("an attribute's value is missing"),
                             HasSubstr("a number, string, list, true, false or dim(n)")));
}

TEST_F(ParseErrors, OfKernels) {
  const BadText cases[] = {
      {"1", "a statement is missing", "if, let, scratch, prefetch, a store"},
      {"for %i to 3 { }", "'from' is missing", "for %i from 0 count n { ... }"},
      {"for %i from 0 to 3 { }", "'count' is missing", "for %i from 0 count n { ... }"},
      {"scratch %s: f32", "a buffer's type is missing", "tensor[n, 4; f32]"},
      {"scratch %s: tensor[*; f32]", "a buffer can't be tensor[*; f32]", "known sizes"},
      {"let %i = 1 %i[0] = 1.0", "%i is not a buffer", "a buffer"},
      {"%y[0] = $1", "unknown part $1", "a part that is named before"},
      {"$1 = 1.0 $1 = 2.0", "$1 is already bound", "another number"},
      {"%y[0] = ,", "an expression is missing",
       "a number, %variable, %buffer[...], f(...) or (...)"},
      {"%y[0] = \"a\"", "an expression is missing",
       "a number, %variable, %buffer[...], f(...) or (...)"},
      {"%y[0] = c64(1)", "a literal of c64 is not 0", "0"},
      {"%y[0] = not(1.0)", "not of f32", "bool"},
      {"%y[0] = exp(1)", "exp of i64", "a float"}};
  expect_errors(cases, "kernel @k(%x: tensor[n; f32]) -> (%y: tensor[n; f32]) { ", " }");
}

TEST_F(ParseErrors, LetsAreOpenToALimit) {
  std::string lets;
  for (int i = 0; i <= 2000; ++i) lets += cat("let %a", i, " = 1\n");
  const BadText cases[] = {{lets, "too many lets and scratches are open", "at most 2000"}};
  expect_errors(cases, "kernel @k(%x: tensor[n; f32]) -> (%y: tensor[n; f32]) { ", " }");
}

TEST_F(ParseErrors, OfComputes) {
  const BadText cases[] = {
      {"(%y) repeat n { }", "'with' is missing", "repeat n with (state %h = %y)"},
      {"(%y) repeat n with (x) { }", "what an iteration takes or leaves is missing",
       "counter %i, state %h = %y or rows %y"},
      {"(%y) repeat n with (counter %x, counter %x) { }", "a compute has one counter"},
      {"(%y) { scan sum %y: tensor[n; f32] at [%i] { 1.0 } }", "'along' is missing",
       "scan along 0 %y: ..."},
      {"(%y) { map %y: tensor[n; f32] { 1.0 } }", "'at' is missing",
       "%y: tensor[n; f32] at [%i] { ... }"},
      {"(%y) { reduce sum %y: tensor[f32] at [] { 1.0 } }", "'over' is missing", "over [%k < n]"},
      {"(%y) { fold }", "a stage is missing", "map, reduce, scan or scatter"},
      {"(%y) integers(n) { map %y: tensor[n; f32] at [%i] { 1.0 } }",
       "the integers are not the symbols that no parameter binds", "no integers"},
      {"(%y) { map %y: tensor[n; f32] at [%i] { cast(f32, dim(m)) } }",
       "the integers are not the symbols that no parameter binds", "integers(m)"}};
  expect_errors(cases, "compute @k(%x: tensor[n; f32]) -> ", "");
}

TEST_F(ParseErrors, ComputesHaveMostStagesAndAxes) {
  std::string stages, axes;
  for (int i = 0; i <= 500; ++i) {
    stages += cat("map %y", i, ": tensor[n; f32] at [%i] { 1.0 }\n");
  }
  for (int i = 0; i <= 32; ++i) axes += cat("%k", i, " < 1, ");
  const BadText cases[] = {{stages, "a compute has too many stages", "at most 500"},
                           {cat("reduce sum %y: tensor[f32] at [] over [", axes, "] { 1.0 }"),
                            "too many reduced axes", "at most 32"}};
  expect_errors(cases, "compute @k(%x: tensor[n; f32]) -> (%y) { ", " }");
}

TEST_F(ParseErrors, OfTextsOfKernelsAlone) {
  EXPECT_THAT(failure_of([] { parse_kernels("fn @main() -> i64 { 1 }", "t.tn"); }),
              testing::AllOf(HasSubstr("this text may only contain kernels"),
                             HasSubstr("kernel or compute")));
}

TEST_F(ParseErrors, OfAValueThatIsMissing) {
  EXPECT_THAT(failure_of([] { parse_constant("%x"); }),
              testing::AllOf(HasSubstr("a constant is missing"),
                             HasSubstr("a number, tensor[...]{...} or shape[...]")));
}

}  // namespace
}  // namespace tenon::graph
