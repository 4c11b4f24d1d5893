#include "graph/ir/variance.h"

#include <gtest/gtest.h>

#include "graph/ir/text.h"

namespace tenon::graph {
namespace {

// Of the parameters of `type` in a module of these types.
std::vector<Relations> relations(const std::string& types, std::string_view type) {
  const Module module = parse_module(types, "types.tn");
  const Variances variances(module->adts);
  std::vector<Relations> out;
  for (size_t i = 0; i < module->adts.at(String(type))->type_params.size(); ++i) {
    out.push_back(variances.of(type, i));
  }
  return out;
}

using Found = std::vector<Relations>;

TEST(Variances, AFieldGivesItsValue) {
  EXPECT_EQ(relations("type t[A, B] { T((A, array[A])) }", "t"), Found({kFits, 0}));
}

TEST(Variances, AFunctionTakesItsParameters) {
  EXPECT_EQ(relations("type t[A, B] { T(fn(A) -> B) }", "t"), Found({kPassesBack, kFits}));
  EXPECT_EQ(relations("type t[A] { T(fn(A) -> A) }", "t"), Found({kFits | kPassesBack}));
}

TEST(Variances, WhatAFunctionTakesInsideOfAnArgumentIsNotChecked) {
  EXPECT_EQ(relations("type t[A] { T(fn(array[A]) -> i64) }", "t"), Found({kFitsBack}));
  EXPECT_EQ(relations("type t[A] { T(fn(fn() -> A) -> i64) }", "t"), Found({kFitsBack}));
}

TEST(Variances, AFunctionThatAFunctionTakesTurnsTheOrderRound) {
  EXPECT_EQ(relations("type t[A] { T(fn(fn(A) -> i64) -> i64) }", "t"), Found({kPasses}));
}

TEST(Variances, DataTypesMayReferToEachOther) {
  const std::string types =
      "type a[T] { A(b[T, i64]), Leaf(T) }\n"
      "type b[X, Y] { B(fn(c[X]) -> Y), More(a[Y]) }\n"
      "type c[X] { C(a[X], list[c[X]]) }\n";
  EXPECT_EQ(relations(types, "a"), Found({kFits | kFitsBack}));
  EXPECT_EQ(relations(types, "c"), Found({kFits | kFitsBack}));
}

TEST(Variances, UnknownTypesAreInvariant) {
  EXPECT_EQ(Variances::of_prelude().of("list", 0), kFits);
  EXPECT_EQ(Variances::of_prelude().of("other", 0), kFits | kFitsBack);
}

}  // namespace
}  // namespace tenon::graph
