// Modules that are built step by step, as a host calls the functions that build.
#include "driver/build_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/functions_testing.h"
#include "graph/ir/module.h"
#include "object/map.h"
#include "support/error_testing.h"

namespace tenon::driver {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string failure(const char* name, const auto&... args) {
  return failure_of([&] { call(name, args...); });
}

Any arm(auto body) {
  return Any(Function::from_typed(body));
}

TEST(Build, MakesAModuleStepByStep) {
  const Any b = call("tenon.build_begin");
  call("tenon.build_at", b, "/first");
  Any x = call("tenon.build_param", b, "x", "tensor[n; f32]");
  const Any k = call("tenon.build_param", b, "k", call("tenon.build_type", "i64"));
  Any twice = call("tenon.build_op", b, "add", Args{x, x}, Any());
  const Any small = call("tenon.build_op", b, "less", Args{k, 3}, Map<String, Any>());
  const Any either = call("tenon.build_if", b, small, Function::from_typed([&] { return twice; }),
                          Function::from_typed([&] { return x; }));
  const Any sum = call("tenon.build_loop", b, Array<String>{"i"}, Args{"i64"}, Args{0},
                       Function::from_typed([&](const Array<Any>& v) {
                         return call("tenon.build_op", b, "less", Args{v[0], k}, Any());
                       }),
                       Function::from_typed([&](const Array<Any>& v) {
                         return call("tenon.build_op", b, "add", Args{v[0], 2}, Any());
                       }));
  const Any result = call("tenon.build_tuple", b, Args{either, sum});
  call("tenon.build_finish", b, "main", result, Any());
  const Any module = call("tenon.build_module", b);
  const auto values =
      call("tenon.interpret", module, "main", Args{ones(2), 1}, Any()).as<Array<Any>>();
  EXPECT_EQ(first(values[0]), 2);
  EXPECT_EQ(values[1].as<int64_t>(), 2);
  EXPECT_EQ(call("tenon.print", module).as<String>(),
            call("tenon.print", call("tenon.parse", call("tenon.print", module), "again", Any()))
                .as<String>());
}

TEST(Build, MakesAndMatchesDataTypes) {
  const Any b = call("tenon.build_begin");
  call("tenon.build_define", b, "type tree[T] { Leaf, Node(tree[T], T, tree[T]) }");
  call("tenon.build_define", b, "type color { Red, Green }");
  call("tenon.build_declare", b, "total", "fn(tree[i64]) -> i64");
  call("tenon.build_declare", b, "add_up", call("tenon.build_type", "fn(i64, i64) -> i64"));

  const Any t = call("tenon.build_param", b, "t", "tree[i64]");
  const Any sum =
      call("tenon.build_match", b, t, Array<String>{"Leaf", "Node(left, %x, right)"},
           Args{Function::from_typed([](const Array<Any>&) { return 0; }),
                Function::from_typed([&](const Array<Any>& v) {
                  const Any left = call("tenon.build_call", b, "total", Args{v[0]}, Args());
                  const Any right = call("tenon.build_call", b, "total", Args{v[2]}, Args());
                  const Any both = call("tenon.build_op", b, "add", Args{left, right}, Any());
                  return call("tenon.build_op", b, "add", Args{both, v[1]}, Any());
                })});
  call("tenon.build_finish", b, "total", sum, Any());

  const Any up = call("tenon.build_param", b, "a", "i64"),
            by = call("tenon.build_param", b, "b", "i64");
  call("tenon.build_finish", b, "add_up", call("tenon.build_op", b, "add", Args{up, by}, Any()),
       Any());

  const Any x = call("tenon.build_param", b, "x", "tensor[n; f32]");
  const Any n = call("tenon.build_size", b, "2*n");
  const Any leaf = call("tenon.build_construct", b, "Leaf", Args(), "tree[i64]");
  const Any tree = call("tenon.build_construct", b, "Node", Args{leaf, n, leaf}, Any());
  const Any summed = call("tenon.build_call", b, "total", Args{tree}, Args());
  const Any closure = call("tenon.build_closure", b, "add_up", Args{summed}, Args());
  const Any more = call("tenon.build_call_closure", b, closure, Args{100});
  const Any array = call("tenon.build_array", b, "f32", Args{1, 2.5});
  const Any second = call("tenon.build_op", b, "array_get", Args{array, 1}, Any());
  const Any half = call("tenon.build_scalar", "f32", 0.5);
  const Any scaled = call("tenon.build_op", b, "mul", Args{second, half}, Any());
  const Any result = call("tenon.build_tuple", b, Args{more, scaled, x});
  call("tenon.build_finish", b, "main", result, Any());
  const Any module = call("tenon.build_module", b);
  const auto values =
      call("tenon.interpret", module, "main", Args{ones(3)}, Any()).as<Array<Any>>();
  EXPECT_EQ(values[0].as<int64_t>(), 106);
  EXPECT_EQ(values[1].as<double>(), 1.25);
  EXPECT_EQ(call("tenon.print", module).as<String>(),
            call("tenon.print", call("tenon.parse", call("tenon.print", module), "again", Any()))
                .as<String>());
}

TEST(Build, MakesPolymorphicFunctionsAndCallsImports) {
  const Any b = call("tenon.build_begin");
  call("tenon.build_import", b, "std/list.tn", "l", Any());
  call("tenon.build_define", b,
       "fn @twice(%x: i64) -> i64 { mul(%x, 2) } fn @no[T]() -> option[T] { None }");
  call("tenon.build_declare", b, "last", "fn[T](list[T], T) -> T");

  call("tenon.build_type_param", b, "T");
  const Any xs = call("tenon.build_param", b, "xs", "list[T]");
  const Any otherwise = call("tenon.build_param", b, "otherwise", "T");
  const Any found =
      call("tenon.build_match", b, xs, Array<String>{"Nil", "Cons(x, rest)"},
           Args{Function::from_typed([&](const Array<Any>&) { return otherwise; }),
                Function::from_typed([&](const Array<Any>& v) {
                  return call("tenon.build_call", b, "last", Args{v[1], v[0]}, Args());
                })});
  call("tenon.build_finish", b, "last", found, Any());

  const Any twice = call("tenon.build_closure", b, "twice", Args(), Args());
  Any numbers = call("tenon.build_construct", b, "Nil", Args(), "list[i64]");
  for (const int n : {3, 2, 1}) {
    numbers = call("tenon.build_construct", b, "Cons", Args{n, numbers}, Any());
  }
  const Any doubled = call("tenon.build_call", b, "l.map", Args{twice, numbers}, Args());
  const Any last = call("tenon.build_call", b, "last", Args{doubled, 0}, Args());
  const Any length = call("tenon.build_closure", b, "l.length", Args(), Args{"i64"});
  const Any count = call("tenon.build_call_closure", b, length, Args{doubled});
  const Any none = call("tenon.build_call", b, "no", Args(), Args{"i8"});
  call("tenon.build_finish", b, "main", call("tenon.build_tuple", b, Args{last, count, none}),
       Any());
  const Any module = call("tenon.build_module", b);
  const auto text = call("tenon.print", module).as<String>().str();
  EXPECT_THAT(text, HasSubstr("fn @last[T](%xs: list[T], %otherwise: T) -> T"));
  EXPECT_THAT(text, HasSubstr("fn @\"std/list.map\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("std/list.sort"))) << "an unused function was kept";
  const auto values = call("tenon.interpret", module, "main", Args(), Any()).as<Array<Any>>();
  EXPECT_EQ(values[0].as<int64_t>(), 6);
  EXPECT_EQ(values[1].as<int64_t>(), 3);
  EXPECT_THAT(text, HasSubstr("@no[i8]()"));

  EXPECT_THAT(failure("tenon.build_call", b, "no", Args(), Args{"i8", "i8"}),
              AllOf(HasSubstr("@no has the wrong number of type arguments"),
                    HasSubstr("found     2"), HasSubstr("expected  1")));
  EXPECT_THAT(failure("tenon.build_call", b, "no", Args(), Args{"i8[]"}), HasSubstr("i8[]"));
}

TEST(Build, ATupleOfNothingIsNone) {
  const Any module = call("tenon.parse", "fn @main() -> () { () }", "unit.tn", Any());
  EXPECT_TRUE(call("tenon.interpret", module, "main", Args(), Any()).is_none());
}

TEST(Build, SaysWhatIsWrongWithTheModule) {
  const Any b = call("tenon.build_begin");
  EXPECT_THAT(failure("tenon.build_import", b, "std/lost.tn", "l", Any()),
              HasSubstr("std/lost.tn"));
  EXPECT_THAT(failure("tenon.build_import", b, "std/list.tn", "l.m", Any()),
              AllOf(HasSubstr("not a name for an import"), HasSubstr("\"l.m\"")));
  EXPECT_THAT(failure("tenon.build_import", b, "std/list.tn", "l", Map<String, Any>{{"level", 1}}),
              HasSubstr("level"));
  EXPECT_THAT(failure("tenon.build_define", b, "fn @one() -> i64 { two }"),
              HasSubstr("definitions:1:20"));
  call("tenon.build_define", b, "fn @one() -> i64 { 1 }");
  EXPECT_THAT(failure("tenon.build_define", b, "fn @one() -> i64 { 1 }"), HasSubstr("one"));
  EXPECT_THAT(failure("tenon.build_declare", b, "one", "fn() -> i64"),
              HasSubstr("there is a function 'one' already"));
  EXPECT_THAT(failure("tenon.build_finish", b, "one", 1, Any()),
              HasSubstr("there is a function 'one' already"));
  for (const Any& type : {Any("i64"), call("tenon.build_type", "i64")}) {
    EXPECT_THAT(failure("tenon.build_declare", b, "f", type),
                AllOf(HasSubstr("'f' is declared, but not as a function"),
                      HasSubstr("such as fn(i64) -> i64")));
  }
  EXPECT_THAT(failure("tenon.build_declare", b, "f", 3), HasSubstr("this is not a type"));
  call("tenon.build_declare", b, "f", "fn(i64) -> i64");
  EXPECT_THAT(failure("tenon.build_define", b, "fn @f() -> i64 { 1 }"),
              HasSubstr("there is a function 'f' already"));
  EXPECT_THAT(failure("tenon.build_module", b),
              AllOf(HasSubstr("'f' is declared but not built"), HasSubstr("fn(i64) -> i64")));
  EXPECT_THAT(failure("tenon.build_type_param", b, "list[T]"),
              HasSubstr("not a name for a type parameter"));
  call("tenon.build_type_param", b, "T");
  EXPECT_THAT(failure("tenon.build_type_param", b, "T"), HasSubstr("already defined"));
  call("tenon.build_discard", b);
  EXPECT_THAT(failure("tenon.build_param", b, "x", "T"), HasSubstr("there is no type 'T'"));
  const Any x = call("tenon.build_param", b, "x", "i64");
  call("tenon.build_op", b, "add", Args{x, x}, Any());
  EXPECT_THAT(
      failure("tenon.build_param", b, "y", "i64"),
      AllOf(HasSubstr("the parameter y comes too late"), HasSubstr("before everything else")));
  EXPECT_THAT(failure("tenon.build_call", b, "ones", Args(), Args()), HasSubstr("@one"));
}

TEST(Build, SaysWhatIsWrongWithDataTypesAndPatterns) {
  const Any b = call("tenon.build_begin");
  call("tenon.build_define", b, "type tree[T] { Leaf, Node(tree[T], T, tree[T]) }");
  const Any t = call("tenon.build_param", b, "t", "(tree[i64], bool)");
  const auto pattern = [&](const char* text) {
    const std::string found =
        failure("tenon.build_match", b, t, Array<String>{text},
                Args{Function::from_typed([](const Array<Any>&) { return 0; })});
    call("tenon.build_discard", b);
    return found;
  };
  EXPECT_THAT(pattern("(Leaf"), AllOf(HasSubstr("pattern:1:6: "), HasSubstr("')' is missing")));
  EXPECT_THAT(pattern("(Node(l, 1), _)"), HasSubstr("3 fields, as in Node(_, _, _)"));
  EXPECT_THAT(pattern("(Node, _)"), HasSubstr("Node(...) with a pattern for each, or _ alone"));
  EXPECT_THAT(pattern("(Leaf, _, _)"), HasSubstr("the pattern has more than 2 fields"));
  EXPECT_THAT(pattern("(Leaf, _) x"), HasSubstr("unexpected text after a pattern"));
  EXPECT_THAT(pattern("(Leef, _)"), HasSubstr("Leef is not a constructor of tree[i64]"));
  EXPECT_THAT(pattern("(Leaf, 3)"), HasSubstr("bool"));
  EXPECT_THAT(pattern("(Leaf, 12345678901234567890)"), HasSubstr("an integer of 64 bits"));
  EXPECT_THAT(pattern(std::string(200, '(').c_str()), HasSubstr("a tuple pattern"));
  EXPECT_THAT(
      failure("tenon.build_construct", b, "Nod", Args(), Any()),
      AllOf(HasSubstr("no data type has a constructor \"Nod\""), HasSubstr("build_define")));
  EXPECT_THAT(failure("tenon.build_construct", b, "Leaf", Args(), Any()),
              AllOf(HasSubstr("nothing determines the type arguments of Leaf"),
                    HasSubstr("give the type, such as \"tree[i64]\"")));
  EXPECT_THAT(failure("tenon.build_match", b, t, Array<String>{"_"}, Args()),
              HasSubstr("1 patterns, 0 arms"));
  EXPECT_THAT(failure("tenon.build_scalar", "i64", 0.5), HasSubstr("0.5 of \"i64\""));
}

TEST(Build, SaysWhatIsWrong) {
  const Any b = call("tenon.build_begin");
  EXPECT_THAT(failure("tenon.build_type", "tensr[3]"), HasSubstr("tensr"));
  EXPECT_THAT(failure("tenon.build_param", b, "x", 3), HasSubstr("this is not a type"));
  EXPECT_THAT(failure("tenon.build_param", Any(), "x", "i64"), HasSubstr("the builder is none"));
  EXPECT_THAT(failure("tenon.build_op", b, "rellu", Args{1}, Any()), HasSubstr("rellu"));
  EXPECT_THAT(failure("tenon.build_op", b, "relu", Args{Map<String, Any>()}, Any()),
              HasSubstr("this is not an operand"));
  Any deep = 1;
  for (int i = 0; i < 100'000; ++i) deep = Any(Args{deep});
  EXPECT_THAT(failure("tenon.build_finish", b, "f", deep, Any()),
              HasSubstr("tuples are nested deeper than"));
  EXPECT_THAT(failure("tenon.build_check", b, "same", 1, "n", "why"),
              HasSubstr("this is not a kind of check"));
  EXPECT_THAT(failure("tenon.build_if", b, true, Any(), Any()), HasSubstr("the first arm is none"));
  EXPECT_THAT(failure("tenon.build_node", "graph.Nothing", Map<String, Any>()),
              HasSubstr("no type \"graph.Nothing\" can be made"));
  EXPECT_THAT(failure("tenon.build_node", "graph.Tuple", Map<String, Any>{{"field", 1}}),
              HasSubstr("graph.Tuple has no field \"field\""));
  EXPECT_THAT(failure("tenon.build_node", "graph.Field", Map<String, Any>{{"index", 1}}),
              HasSubstr("graph.Field lacks an object in its field tuple"));
}

TEST(Build, AttributesTakeSizesAndDtypesAsHostsWriteThem) {
  const Any b = call("tenon.build_begin");
  const Any x = call("tenon.build_param", b, "x", "tensor[n, 4; f32]");
  const Any pairs =
      call("tenon.build_op", b, "reshape", Args{x}, Map<String, Any>{{"shape", Args{"2*n", 2}}});
  const Any whole =
      call("tenon.build_op", b, "cast", Args{pairs}, Map<String, Any>{{"dtype", String("i32")}});
  call("tenon.build_finish", b, "main", whole, Any());
  const Any module = call("tenon.build_module", b);
  EXPECT_THAT(call("tenon.print", module).as<String>().str(), HasSubstr("-> tensor[2*n, 2; i32]"));
  EXPECT_THAT(failure("tenon.build_op", b, "cast", Args{x}, Map<String, Any>{{"dtype", "f31"}}),
              HasSubstr("this is not a dtype's name, such as \"f32\""));
}

TEST(Build, AnyNodeCanBeMadeFromItsFields) {
  const Any b = call("tenon.build_begin");
  const Any x = call("tenon.build_param", b, "x", "i64");
  const Any node =
      call("tenon.build_node", "graph.Tuple", Map<String, Any>{{"fields", Args{x, x}}});
  const Any pair = call("tenon.build_bind", b, node, "pair");
  EXPECT_THAT(failure("tenon.build_bind", b, x, "y"),
              HasSubstr("a variable or a constant can't be bound to another variable"));
  const Any one = call("tenon.build_field", b, pair, 1);
  call("tenon.build_finish", b, "main", one, Any());
  const Any module = call("tenon.build_module", b);
  EXPECT_EQ(call("tenon.interpret", module, "main", Args{4}, Any()).as<int64_t>(), 4);
}

TEST(Build, TextsKnowWhatIsThereBeforeThem) {
  const Any b = call("tenon.build_begin");
  call("tenon.build_import", b, "std/list.tn", "l", Any());
  call("tenon.build_import", b, "std/list.tn", "m", Any());
  const Any x = call("tenon.build_param", b, "x", "i64");
  call("tenon.build_finish", b, "twice", call("tenon.build_op", b, "mul", Args{x, 2}, Any()),
       Any());
  call("tenon.build_declare", b, "later", "fn(i64) -> i64");
  EXPECT_THAT(failure("tenon.build_define", b, "fn @one() -> i64 { two }"),
              HasSubstr("definitions:1:20"));
  call("tenon.build_define", b,
       "type box { Box(i64) }\n"
       "fn @four(%xs: list[i64]) -> i64 {\n  %n = @l.length(%xs)\n  %m = @later(%n)\n  "
       "@twice(%m)\n}");
  EXPECT_THAT(failure("tenon.build_define", b, "import \"std/tree.tn\" as t\nfn @f() -> i64 { x }"),
              HasSubstr("definitions:2:18"));
  for (const char* text : {"type box { Crate }", "type crate { Box }"}) {
    EXPECT_THAT(failure("tenon.build_define", b, text),
                AllOf(HasSubstr("already"), HasSubstr("definitions:1")));
  }
  EXPECT_THAT(failure("tenon.build_define", b, "fn @\"std/list.map\"() -> i64 { 1 }"),
              HasSubstr("there is a function 'std/list.map' already"));
  EXPECT_THAT(failure("tenon.build_define", b, "import \"std/tree.tn\" as l"),
              HasSubstr("there is an import l already"));
  const Any y = call("tenon.build_param", b, "y", "i64");
  EXPECT_THAT(failure("tenon.build_finish", b, "std/list.map", y, Any()),
              HasSubstr("there is a function 'std/list.map' already"));
  call("tenon.build_finish", b, "later", call("tenon.build_op", b, "add", Args{y, 1}, Any()),
       Any());
  const Any xs = call("tenon.build_construct", b, "Cons",
                      Args{5, call("tenon.build_construct", b, "Nil", Args(), "list[i64]")}, Any());
  const Any lengths = call("tenon.build_tuple", b,
                           Args{call("tenon.build_call", b, "l.length", Args{xs}, Args()),
                                call("tenon.build_call", b, "m.length", Args{xs}, Args()),
                                call("tenon.build_call", b, "four", Args{xs}, Args())});
  call("tenon.build_finish", b, "main", lengths, Any());
  const auto values = call("tenon.interpret", call("tenon.build_module", b), "main", Args(), Any())
                          .as<Array<Any>>();
  EXPECT_EQ(values[0].as<int64_t>(), 1);
  EXPECT_EQ(values[1].as<int64_t>(), 1);
  EXPECT_EQ(values[2].as<int64_t>(), 4);
}

// The function that is being built outlives the callbacks that build its blocks.
TEST(Build, CallbacksCannotEndTheFunction) {
  for (const char* name : {"tenon.build_discard", "tenon.build_finish"}) {
    const Any b = call("tenon.build_begin");
    const Any n = call("tenon.build_param", b, "n", "i64");
    const auto end = [&](const Args& = {}) -> Any {
      if (std::string_view(name) == "tenon.build_discard") return call(name, b);
      return call(name, b, "main", n, Any());
    };
    const char* message = "a block of the function is still being built";
    EXPECT_THAT(
        failure("tenon.build_if", b, true, arm([&] { return end(); }), arm([] { return 1; })),
        HasSubstr(message));
    EXPECT_THAT(failure("tenon.build_loop", b, Array<String>{"i"}, Args{"i64"}, Args{0}, arm(end),
                        arm([](const Args&) { return 1; })),
                HasSubstr(message));
    EXPECT_THAT(
        failure("tenon.build_function", b, "", Array<String>{"i"}, Args{"i64"}, "i64", arm(end)),
        HasSubstr(message));
    EXPECT_THAT(failure("tenon.build_match", b, n, Array<String>{"_"}, Args{arm(end)}),
                HasSubstr(message));
    call("tenon.build_finish", b, "main", n, Any());
    EXPECT_EQ(call("tenon.interpret", call("tenon.build_module", b), "main", Args{3}, Any())
                  .as<int64_t>(),
              3);
  }
}

TEST(Build, GoesOnAfterAMistakeInABlock) {
  const Any b = call("tenon.build_begin");
  const Any x = call("tenon.build_param", b, "x", "tensor[n; f32]");
  const auto mistake = [&](const Args& = {}) -> Any {
    call("tenon.build_match_shape", b, x, Args{"k"});
    return call("tenon.build_op", b, "rellu", Args{x}, Any());
  };
  EXPECT_THAT(failure("tenon.build_if", b, true, arm([&] { return mistake(); }), arm(mistake)),
              HasSubstr("rellu"));
  EXPECT_THAT(failure("tenon.build_match", b, x, Array<String>{"_"}, Args{arm(mistake)}),
              HasSubstr("rellu"));
  EXPECT_THAT(
      failure("tenon.build_function", b, "f", Array<String>{"i"}, Args{"i64"}, "i64", arm(mistake)),
      HasSubstr("rellu"));
  EXPECT_THAT(failure("tenon.build_size", b, "k"), HasSubstr("k"));
  call("tenon.build_finish", b, "main", call("tenon.build_op", b, "relu", Args{x}, Any()), Any());
  EXPECT_EQ(
      first(call("tenon.interpret", call("tenon.build_module", b), "main", Args{ones(2)}, Any())),
      1);
}

TEST(Build, HoldsFunctionsToTheirDeclarations) {
  const Any b = call("tenon.build_begin");
  call("tenon.build_declare", b, "f", "fn(i64) -> f32");
  const Any x = call("tenon.build_param", b, "x", "f32");
  EXPECT_THAT(failure("tenon.build_finish", b, "f", x, Any()),
              AllOf(HasSubstr("'f' is declared with another type"), HasSubstr("fn(f32) -> f32"),
                    HasSubstr("fn(i64) -> f32")));
  const Any n = call("tenon.build_param", b, "n", "i64");
  EXPECT_THAT(failure("tenon.build_finish", b, "f", n, Any()), HasSubstr("the result of @f"));
  call("tenon.build_finish", b, "f", 0.5, Any());
  call("tenon.build_module", b);
}

TEST(Build, RefusesWhatTheTextRefuses) {
  const Any b = call("tenon.build_begin");
  EXPECT_THAT(failure("tenon.build_type_param", b, "3"),
              HasSubstr("not a name for a type parameter"));
  const Any x = call("tenon.build_param", b, "x", "array[i64]");
  EXPECT_THAT(failure("tenon.build_op", b, "array_get", Args{x, 0}, Map<String, Any>{{"axis", 1}}),
              AllOf(HasSubstr("array_get takes no attributes"), HasSubstr("axis")));
  EXPECT_THAT(failure("tenon.build_size", b, "size_of(size(3))"),
              HasSubstr("size_of has no value here"));
  const Any node = call("tenon.build_node", "graph.Tuple", Map<String, Any>{{"fields", Args{x}}});
  EXPECT_THAT(failure("tenon.build_op", b, "add", Args{node, 1}, Any()),
              AllOf(HasSubstr("an operand is a variable or a constant"), HasSubstr("graph.Tuple")));
  EXPECT_THAT(failure("tenon.build_node", "graph.TensorType",
                      Map<String, Any>{{"rank", 5}, {"dims_known", true}, {"dtype", f32}}),
              HasSubstr("contradicts itself"));
  Any deep = call("tenon.build_type", "i64");
  const std::string error = failure_of([&] {
    for (int i = 0; i < 64; ++i) {
      deep = call("tenon.build_node", "graph.TupleType",
                  Map<String, Any>{{"fields", Args{deep, deep}}});
    }
  });
  EXPECT_THAT(error, HasSubstr("a type is too large"));
}

TEST(Build, NodesWhoseBlocksNestDeepAreRefused) {
  const Any b = call("tenon.build_begin");
  const Any type = call("tenon.build_type", "i64"), one = call("tenon.build_constant", 1);
  const auto node = [](const char* key, const Map<String, Any>& fields) {
    return call("tenon.build_node", key, fields);
  };
  const Any leaf = node("graph.Block", {{"bindings", Args()}, {"result", one}});
  const auto nested = [&](int levels, bool twice) {
    Any block = leaf;
    for (int i = 0; i < levels; ++i) {
      const Any v = node("graph.Var", {{"name", "v"}, {"type", type}});
      const Any e = node("graph.If", {{"condition", call("tenon.build_constant", true)},
                                      {"then_block", block},
                                      {"else_block", twice ? block : leaf}});
      const Any binding = node("graph.Binding", {{"value", e}, {"var", v}});
      block = node("graph.Block", {{"bindings", Args{binding}}, {"result", v}});
    }
    return node("graph.If", {{"condition", call("tenon.build_constant", true)},
                             {"then_block", block},
                             {"else_block", leaf}});
  };
  call("tenon.build_bind", b, nested(3, false), "y");
  EXPECT_THAT(failure("tenon.build_bind", b, nested(1000, false), "y"),
              HasSubstr("blocks are nested deeper than 100 levels"));
  EXPECT_THAT(failure("tenon.build_bind", b, nested(50, true), "y"),
              HasSubstr("a block is part of two right-hand sides"));
}

TEST(Build, TuplesAreWrittenWhereverOperandsAre) {
  const Any b = call("tenon.build_begin");
  const Any x = call("tenon.build_param", b, "x", "i64");
  const Any nested = call("tenon.build_tuple", b, Args{Args{x, 2}, 3});
  const Any inner = call("tenon.build_field", b, nested, 0);
  call("tenon.build_finish", b, "main", call("tenon.build_field", b, inner, 1), Any());
  call("tenon.build_param", b, "y", "f32");
  const Any pair = call("tenon.build_closure", b, "main", Args{1}, Args());
  call("tenon.build_finish", b, "other", call("tenon.build_call_closure", b, pair, Args()), Any());
  const Any module = call("tenon.build_module", b);
  EXPECT_EQ(call("tenon.interpret", module, "main", Args{1}, Any()).as<int64_t>(), 2);
}

}  // namespace
}  // namespace tenon::driver
