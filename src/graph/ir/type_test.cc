#include "graph/ir/type.h"

#include <gtest/gtest.h>

#include "graph/ir/variance.h"

namespace tenon::graph {
namespace {

// Of the prelude's data types.
bool is_subtype(const TypeRef& from, const TypeRef& to) {
  return graph::is_subtype(from, to, Variances::of_prelude());
}

TypeRef join(const TypeRef& a, const TypeRef& b) {
  return graph::join(a, b, Variances::of_prelude());
}

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

TypeRef rank2() {
  return tensor_type_of_rank(f32, 2);
}

TEST(Type, PrintsAsTheLanguageWritesIt) {
  EXPECT_EQ(to_text(TypeRef(tensor_type(f32, {n, 4}))), "tensor[n, 4; f32]");
  EXPECT_EQ(to_text(TypeRef(tensor_type(boolean, {}))), "tensor[bool]");
  EXPECT_EQ(to_text(TypeRef(tensor_type_unknown(bf16))), "tensor[*; bf16]");
  EXPECT_EQ(to_text(tuple_type({scalar_type(i64)})), "(i64,)");
  EXPECT_EQ(to_text(unit_type()), "()");
  EXPECT_EQ(to_text(function_type({array_type(rank2())}, adt_type("list", {scalar_type(f32)}))),
            "fn(array[tensor[rank=2; f32]]) -> list[f32]");
}

TEST(Type, LessIsKnownByASupertype) {
  TypeRef known = tensor_type(f32, {n, 4}), unknown = tensor_type_unknown(f32);
  EXPECT_TRUE(is_subtype(known, rank2()));
  EXPECT_TRUE(is_subtype(rank2(), unknown));
  EXPECT_TRUE(is_subtype(known, unknown));
  EXPECT_FALSE(is_subtype(unknown, rank2()));
  EXPECT_FALSE(is_subtype(known, tensor_type_unknown(f64)));
  EXPECT_FALSE(is_subtype(known, tensor_type(f32, {m, 4})));
  TypeRef valued = with_values(tensor_type(i64, {2}), {n, 4});
  EXPECT_TRUE(is_subtype(valued, tensor_type(i64, {2})));
  EXPECT_FALSE(is_subtype(tensor_type(i64, {2}), valued));
}

TEST(Type, FitsLeavesSizesToRunTime) {
  std::vector<std::pair<Dim, Dim>> unproved;
  EXPECT_TRUE(
      fits(tensor_type(f32, {n, 4}), tensor_type(f32, {m, 4}), Variances::of_prelude(), &unproved));
  ASSERT_EQ(unproved.size(), 1u);
  EXPECT_EQ(unproved[0].first, n);
  EXPECT_FALSE(
      fits(tensor_type(f32, {n, 4}), tensor_type(f32, {n, 5}), Variances::of_prelude(), &unproved));
}

TEST(Type, TensorsAreTheSameWhereEverySizeIsProved) {
  TypeRef known = tensor_type(f32, {n, 4});
  EXPECT_TRUE(same_tensor(known, tensor_type(f32, {n, Dim(2) + 2})));
  EXPECT_FALSE(same_tensor(known, tensor_type(f64, {n, 4})));
  EXPECT_TRUE(same_dims(known, tensor_type(f64, {n, 4})));
  EXPECT_FALSE(same_dims(known, tensor_type(f32, {m, 4})));
  EXPECT_FALSE(same_dims(known, tensor_type(f32, {n})));
  TypeRef rank_only = tensor_type_of_rank(f32, 2);
  EXPECT_FALSE(same_dims(rank_only, rank_only));
  EXPECT_FALSE(same_dims(scalar_type(f32), scalar_type(f32)));
}

TEST(Type, TheJoinIsWhatBothAre) {
  TypeRef a = tensor_type(f32, {n, 4}), b = tensor_type(f32, {m, 4});
  EXPECT_EQ(to_text(join(a, b)), "tensor[rank=2; f32]");
  EXPECT_EQ(to_text(join(a, tensor_type(f32, {n}))), "tensor[*; f32]");
  EXPECT_EQ(to_text(join(tuple_type({a, a}), tuple_type({a, b}))),
            "(tensor[n, 4; f32], tensor[rank=2; f32])");
  EXPECT_FALSE(join(a, tensor_type(f64, {n, 4})));
  EXPECT_FALSE(join(a, scalar_type(f32)));
}

TEST(Type, FunctionTypesDifferInNoSymbolThatTheyBind) {
  auto identity = [](const char* name) {
    TypeRef t = tensor_type(f32, {Dim::symbol(name)});
    return function_type({t}, t);
  };
  EXPECT_TRUE(is_subtype(identity("n"), identity("m")));
  TypeRef other = function_type({tensor_type(f32, {n})}, tensor_type(f32, {n + 1}));
  EXPECT_FALSE(is_subtype(identity("n"), other));
  // A function that takes more kinds of arguments may stand for one that takes fewer.
  TypeRef any = function_type({tensor_type_unknown(f32)}, scalar_type(i64));
  TypeRef some = function_type({tensor_type(f32, {n})}, scalar_type(i64));
  EXPECT_TRUE(is_subtype(any, some));
  EXPECT_FALSE(is_subtype(some, any));
}

TEST(Type, FunctionsJoinInWhatBothTakeAndEitherGives) {
  const auto of = [](const TypeRef& taken, const TypeRef& given) {
    return function_type({taken}, given);
  };
  const TypeRef three = tensor_type(f32, {3}), five = tensor_type(f32, {5});
  EXPECT_EQ(to_text(join(function_type({}, three), function_type({}, five))),
            "fn() -> tensor[rank=1; f32]");
  // A function checks the sizes of what it takes.
  EXPECT_EQ(to_text(join(of(three, scalar_type(i64)), of(five, scalar_type(i64)))),
            "fn(tensor[rank=1; f32]) -> i64");
  // But not what is in an array.
  EXPECT_FALSE(join(of(array_type(three), unit_type()), of(array_type(five), unit_type())));
  // A symbol that one of them binds keeps its meaning, under a name of its own.
  const TypeRef a = function_type({tensor_type(f32, {n}), three}, tensor_type(f32, {n})),
                b = function_type({tensor_type(f32, {m}), five}, tensor_type(f32, {m}));
  EXPECT_EQ(to_text(join(a, b)), "fn(tensor[n; f32], tensor[rank=1; f32]) -> tensor[n; f32]");
  EXPECT_FALSE(join(of(three, unit_type()), of(scalar_type(f32), unit_type())));
}

// The sizes that a function takes are checked when it is called.
TEST(Type, FunctionTypesMayDifferInTheSizesOfParameters) {
  const auto of = [](const TypeRef& t) { return function_type({t}, t); };
  const TypeRef any_size = of(tensor_type(f32, {m, 2})), three = of(tensor_type(f32, {3, 2}));
  EXPECT_TRUE(is_subtype(three, any_size));
  EXPECT_TRUE(is_subtype(any_size, three));
  EXPECT_FALSE(is_subtype(three, of(tensor_type(f32, {4, 2}))));
  EXPECT_FALSE(is_subtype(three, of(tensor_type(i64, {3, 2}))));
  // The result has the sizes that a call which succeeds is given.
  const TypeRef other = function_type({tensor_type(f32, {m, 2})}, tensor_type(f32, {m + 1, 2}));
  EXPECT_FALSE(is_subtype(three, other));
  TypeRef of_rank = of(tensor_type_of_rank(f32, 2));
  EXPECT_TRUE(is_subtype(any_size, of_rank));
  EXPECT_FALSE(is_subtype(of_rank, any_size));
}

TEST(Type, ErasedSymbolsLeaveTheRank) {
  auto keep = [](std::string_view s) { return s == "n"; };
  EXPECT_EQ(to_text(erase_symbols(tensor_type(f32, {n, 4}), keep)), "tensor[n, 4; f32]");
  EXPECT_EQ(to_text(erase_symbols(tensor_type(f32, {n, m + 1}), keep)), "tensor[rank=2; f32]");
  EXPECT_EQ(to_text(erase_symbols(with_values(tensor_type(i64, {1}), {m}), keep)),
            "tensor[1; i64]");
}

// Each pair of arguments may take as many attempts as a single one.
TEST(Type, ManyTypeArgumentsAreRelated) {
  constexpr size_t kCount = 3000;
  const std::vector<TypeRef> some(kCount, adt_type("list", {tensor_type(f32, {n})}));
  const std::vector<TypeRef> any(kCount, adt_type("list", {tensor_type_of_rank(f32, 1)}));
  EXPECT_TRUE(is_subtype(tuple_type(some), tuple_type(any)));
  EXPECT_EQ(to_text(join(tuple_type(some), tuple_type(any))), to_text(tuple_type(any)));
}

TEST(Type, TheSymbolsOfAFunctionTypeAreItsOwn) {
  TypeRef f = function_type({tensor_type(f32, {n})}, tensor_type(f32, {n, m}));
  SymbolSet symbols;
  collect_symbols(f, &symbols);
  EXPECT_EQ(symbols.names(), std::vector<std::string>{"m"});
  TypeRef replaced = substitute(f, [](std::string_view) { return Dim(7); });
  EXPECT_EQ(to_text(replaced), "fn(tensor[n; f32]) -> tensor[n, 7; f32]");
}

}  // namespace
}  // namespace tenon::graph
