#include "graph/ir/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_testing.h"

namespace tenon::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

VarRef var(TypeRef type) {
  auto v = make<Var>();
  v->name = "v";
  v->type = std::move(type);
  return v;
}

PatternRef any() {
  return make<Pattern>();
}

PatternRef constant_pattern(Operand value) {
  auto p = make<Pattern>();
  p->kind = PatternKind::kConstant;
  p->constant = std::move(value);
  return p;
}

PatternRef tuple(Array<PatternRef> fields) {
  auto p = make<Pattern>();
  p->kind = PatternKind::kTuple;
  p->fields = std::move(fields);
  return p;
}

PatternRef made_by(std::string_view constructor, Array<PatternRef> fields = {}) {
  auto p = make<Pattern>();
  p->kind = PatternKind::kConstructor;
  p->constructor = constructor;
  p->fields = std::move(fields);
  return p;
}

PatternRef bound(const VarRef& variable) {
  auto p = make<Pattern>();
  p->kind = PatternKind::kVariable;
  p->var = variable;
  return p;
}

DecisionTree decided(const TypeRef& type, const std::vector<PatternRef>& patterns) {
  Match match;
  match.value = var(type);
  for (const PatternRef& pattern : patterns) {
    match.patterns.push_back(pattern);
    match.arms.push_back(make<Block>());
  }
  return decide(match, Signatures());
}

const TypeRef kList = adt_type("list", {scalar_type(i64)});
const TypeRef kBool = scalar_type(boolean);

TEST(Decide, TestsEachPartOnceAndPartsBeforeTheirFields) {
  const VarRef x = var(scalar_type(i64)), rest = var(kList);
  const DecisionTree tree = decided(kList, {made_by("Cons", {bound(x), made_by("Nil")}),
                                            made_by("Cons", {any(), bound(rest)}), made_by("Nil")});
  const Decision& root = tree.decisions[tree.root];
  EXPECT_EQ(root.kind, Decision::Kind::kConstructor);
  EXPECT_EQ(root.part, 0u);
  ASSERT_EQ(root.cases.size(), 2u);
  EXPECT_EQ(root.cases[0].value, 0);  // Nil
  EXPECT_EQ(tree.decisions[root.cases[0].next].arm, 2u);
  const Decision& tail = tree.decisions[root.cases[1].next];
  EXPECT_EQ(tree.parts[tail.part].field, 1u);
  EXPECT_EQ(root.otherwise, Decision::kNone);
  ASSERT_EQ(tail.cases.size(), 1u);
  EXPECT_EQ(tree.decisions[tail.cases[0].next].arm, 0u);
  EXPECT_EQ(tree.decisions[tail.otherwise].arm, 1u);
  EXPECT_EQ(tree.parts[tree.bound[0][0]].field, 0u);
  EXPECT_EQ(tree.parts[tree.bound[1][0]].field, 1u);
}

TEST(Decide, SharesWhatSeveralWaysNeed) {
  // Whatever the first field is, the second decides alike.
  const PatternRef yes = constant_pattern(constant_bool(true));
  std::vector<TypeRef> types(12, kBool);
  std::vector<PatternRef> patterns;
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<PatternRef> fields(types.size(), any());
    fields[i] = yes;
    patterns.push_back(tuple(Array<PatternRef>(fields)));
  }
  patterns.push_back(any());
  EXPECT_LT(decided(tuple_type(types), patterns).decisions.size(), 30u);
}

TEST(Decide, RefusesWhatAPatternsKindHasNoUseFor) {
  const auto refused = [](Pattern pattern) {
    EXPECT_THAT(failure_of([&] { decided(kBool, {make<Pattern>(pattern)}); }),
                HasSubstr("a pattern has a field that its kind has no use for"));
  };
  Pattern with_variable, with_constant, with_constructor, with_fields;
  with_variable.var = var(kBool);
  with_constant.constant = constant_bool(true);
  with_constructor.constructor = "Nil";
  with_fields.fields = {any()};
  for (const Pattern& p : {with_variable, with_constant, with_constructor, with_fields}) refused(p);
}

TEST(Decide, BoundsWhatAHostMayBuild) {
  PatternRef deep = any(), wide = any();
  TypeRef deep_type = kBool, wide_type = kBool;
  for (int i = 0; i < 40; ++i) wide = tuple({wide, wide});
  for (int i = 0; i < 200; ++i) deep = tuple({deep});
  const auto error = [](const PatternRef& pattern) {
    return failure_of([&] { variables_of(*pattern); });
  };
  EXPECT_THAT(error(deep), HasSubstr("deeper than 100 levels"));
  EXPECT_THAT(error(wide), HasSubstr("more than 100000 parts"));
}

TEST(Decide, RefusesDamagedPatterns) {
  const auto error = [](const PatternRef& pattern) {
    return failure_of([&] { decided(kList, {pattern, any()}); });
  };
  EXPECT_THAT(error(bound(nullptr)), HasSubstr("variable is missing"));
  EXPECT_THAT(error(nullptr), HasSubstr("a pattern is missing"));
  EXPECT_THAT(error(made_by("Cons", {any(), PatternRef()})), HasSubstr("a pattern is missing"));
  EXPECT_THAT(error(made_by("Cons")), HasSubstr("wrong number of fields"));
  EXPECT_THAT(error(constant_pattern({})), HasSubstr("an integer, true or false"));
  EXPECT_THAT(error(constant_pattern(constant_string("x"))), HasSubstr("true or false"));
  auto wrong = make<Constant>();
  wrong->type = scalar_type(i64);
  for (const Any& value : {Any(2.5), Any(true), Any(String("x"))}) {
    wrong->value = value;
    EXPECT_THAT(error(constant_pattern(wrong)), HasSubstr("does not match its value"));
  }
  EXPECT_THAT(error(bound(var(kBool))), HasSubstr("has the wrong type"));
}

// Each number's rows begin with those of all arms before it that take any number.
TEST(Decide, BoundsTheRowsOfNumbersAfterOthers) {
  std::vector<PatternRef> patterns;
  for (int64_t i = 0; i < 2000; ++i) {
    patterns.push_back(tuple({any(), constant_pattern(constant_int(i))}));
  }
  for (int64_t i = 0; i < 2000; ++i) {
    patterns.push_back(tuple({constant_pattern(constant_int(i)), any()}));
  }
  patterns.push_back(any());
  const TypeRef number = scalar_type(i64);
  EXPECT_THAT(failure_of([&] {
                decided(tuple_type({number, number}), patterns);
              }),
              HasSubstr("take too many tests"));
}

TEST(Decide, TakesManyNumbersInOneTest) {
  std::vector<PatternRef> patterns;
  for (int64_t i = 0; i < 5000; ++i) patterns.push_back(constant_pattern(constant_int(i)));
  patterns.push_back(any());
  const DecisionTree tree = decided(scalar_type(i64), patterns);
  EXPECT_EQ(tree.decisions[tree.root].cases.size(), 5000u);
}

TEST(VariablesOf, AreInTheOrderOfTheText) {
  const VarRef a = var(kBool), b = var(kBool);
  EXPECT_THAT(variables_of(*tuple({bound(b), tuple({any(), bound(a)})})), ElementsAre(b, a));
}

}  // namespace
}  // namespace tenon::graph
