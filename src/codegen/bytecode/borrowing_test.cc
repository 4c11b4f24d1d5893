#include "codegen/bytecode/borrowing.h"

#include <gmock/gmock.h>

#include "graph/ir/text.h"
#include "graph/op/register.h"

namespace tenon::codegen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The borrowed parameters, as "function.parameter".
std::vector<std::string> borrowed(const std::string& text) {
  graph::register_graph_types();
  graph::register_operators();
  const graph::Module module = graph::parse_module(text, "test.tn");
  const Borrowing borrowing(module);
  std::vector<std::string> out;
  for (const auto& [name, function] : module->functions) {
    for (const graph::VarRef& param : function->params) {
      if (borrowing.is_borrowed(param.get())) out.push_back(cat(name, ".", param->name));
    }
  }
  return out;
}

TEST(Borrowing, OfWhatIsMatchedReadAndPassedOn) {
  EXPECT_THAT(borrowed(R"(
fn @sum(%xs: list[i64], %n: i64) -> i64 {
  match %xs {
    Nil => { %n }
    Cons(%x, %rest) => { %more = add(%n, %x) @sum(%rest, %more) }
  }
}
fn @both(%p: (list[i64], i64)) -> i64 { %xs = %p.0 %n = %p.1 @sum(%xs, %n) }
)"),
              ElementsAre("sum.xs", "both.p"));
}

TEST(Borrowing, OfNothingThatIsKept) {
  EXPECT_THAT(borrowed(R"(
fn @returned(%xs: list[i64]) -> list[i64] { %xs }
fn @stored(%xs: list[i64]) -> option[list[i64]] { Some(%xs) }
fn @chosen(%c: bool, %xs: list[i64], %ys: list[i64]) -> i64 {
  %zs = if %c { %xs } else { %ys }
  match %zs { Nil => { 0 } Cons(%x, _) => { %x } }
}
fn @passed(%xs: list[i64]) -> list[i64] { @returned(%xs) }
fn @given(%xs: list[i64], %f: fn(list[i64]) -> i64) -> i64 { %f(%xs) }
fn @looped(%xs: list[i64]) -> list[i64] {
  %end = loop (%i: i64 = 0, %ys: list[i64] = %xs) while { less(%i, 3) } { %j = add(%i, 1) (%j, %ys) }
  %end.1
}
)"),
              IsEmpty());
}

// What is kept moves from its cell, and may then be changed in place.
TEST(Borrowing, OfNoWholeWhosePartIsKept) {
  EXPECT_THAT(borrowed(R"(
fn @rest(%xs: list[i64]) -> list[i64] {
  match %xs { Nil => { Nil } Cons(_, %rest) => { %rest } }
}
fn @same(%xs: list[i64]) -> list[i64] {
  match %xs { Cons(_, Nil) => { Nil } %all => { %all } }
}
fn @changed(%state: (array[i64], i64)) -> array[i64] { %a = %state.0 array_push(%a, 1) }
)"),
              IsEmpty());
  EXPECT_THAT(borrowed(R"(
fn @second(%xs: list[i64]) -> i64 {
  match %xs { Cons(_, %rest) => { match %rest { Nil => { 0 } Cons(%x, _) => { %x } } } Nil => { 0 } }
}
fn @applied(%p: (fn(i64) -> i64, i64)) -> i64 { %f = %p.0 %x = %p.1 %f(%x) }
)"),
              ElementsAre("second.xs"));
}

TEST(Borrowing, OfAWholeWhosePartsMayHaveAnyType) {
  EXPECT_THAT(borrowed(R"(
fn @fold[T](%f: fn(i64, T) -> i64, %n: i64, %xs: list[T]) -> i64 {
  match %xs { Nil => { %n } Cons(%x, %rest) => { %m = %f(%n, %x) @fold(%f, %m, %rest) } }
}
)"),
              ElementsAre("fold.xs"));
}

TEST(Borrowing, LeavesMemoryToNewCells) {
  EXPECT_THAT(borrowed(R"(
fn @increased(%xs: list[i64]) -> list[i64] {
  match %xs {
    Nil => { Nil }
    Cons(%x, %rest) => { %y = add(%x, 1) %ys = @increased(%rest) Cons(%y, %ys) }
  }
}
fn @first(%xs: list[i64]) -> option[i64] {
  match %xs { Nil => { None } Cons(%x, _) => { Some(%x) } }
}
)"),
              ElementsAre("first.xs"));
}

// @even hands a list that it owns to @odd by a tail call, which must not grow the stack.
TEST(Borrowing, KeepsTailCallsOfRecursionInConstantSpace) {
  const std::string lists = R"(
fn @list(%n: i64) -> list[i64] { Cons(%n, Nil) }
)";
  EXPECT_THAT(borrowed(lists + R"(
fn @even(%xs: list[i64], %n: i64) -> bool {
  match %xs { Nil => { true } Cons(_, _) => { %m = sub(%n, 1) %ys = @list(%m) @odd(%ys, %m) } }
}
fn @odd(%xs: list[i64], %n: i64) -> bool {
  match %xs { Nil => { false } Cons(_, _) => { %m = sub(%n, 1) @even(%xs, %m) } }
}
)"),
              IsEmpty());
  EXPECT_THAT(borrowed(lists + R"(
fn @is_empty(%xs: list[i64]) -> bool { match %xs { Nil => { true } Cons(_, _) => { false } } }
fn @main(%n: i64) -> bool { %xs = @list(%n) @is_empty(%xs) }
)"),
              ElementsAre("is_empty.xs"));
}

// A tail call of a closure may lead to any function that is a value.
TEST(Borrowing, KnowsThatClosuresLeadBack) {
  EXPECT_THAT(borrowed(R"(
fn @step(%n: i64) -> i64 { %xs = Cons(%n, Nil) @through(%xs, @step) }
fn @through(%xs: list[i64], %f: fn(i64) -> i64) -> i64 {
  match %xs { Nil => { 0 } Cons(%x, _) => { %f(%x) } }
}
)"),
              IsEmpty());
}

TEST(Borrowing, OfNoParameterOfAFunctionThatIsAValue) {
  EXPECT_THAT(borrowed(R"(
fn @head(%xs: list[i64]) -> i64 { match %xs { Nil => { 0 } Cons(%x, _) => { %x } } }
fn @main() -> fn(list[i64]) -> i64 { @head }
)"),
              IsEmpty());
}

}  // namespace
}  // namespace tenon::codegen
