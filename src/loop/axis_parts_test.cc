#include "loop/axis_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loop/tensors_testing.h"
#include "support/text.h"

namespace tenon::loop {
namespace {

using testing::ElementsAre;

const Ref<const Var> v = var("v", i64), u = var("u", i64);

std::vector<std::string> parts(const ExprRef& body, const Dim& extent) {
  std::vector<std::string> texts;
  for (const AxisPart& part : parts_of(body, {v, extent})) {
    texts.push_back(cat(part.begin, "-", part.end, ": ", to_text(part.body)));
  }
  return texts;
}

ExprRef compare(BinaryOp op, const ExprRef& a, const ExprRef& b) {
  return select(binary(op, a, b), u, literal_int(i64, 7));
}

TEST(AxisParts, OfAConcatenation) {
  const auto below = [](int64_t bound) {
    return binary(BinaryOp::kLt, v, literal_int(i64, bound));
  };
  const ExprRef body = select(below(3), u, select(below(5), v, literal_int(i64, 9)));
  EXPECT_THAT(parts(body, Dim(8)), ElementsAre("0-3: u", "3-5: v", "5-8: 9"));
  EXPECT_THAT(parts(body, Dim(4)), ElementsAre("0-3: u", "3-4: v"));
}

TEST(AxisParts, OfEachComparison) {
  const auto number = [](int64_t n) { return literal_int(i64, n); };
  const ExprRef shifted = v + number(2);
  EXPECT_THAT(parts(compare(BinaryOp::kLt, shifted, number(6)), Dim(9)),
              ElementsAre("0-4: u", "4-9: 7"));
  EXPECT_THAT(parts(compare(BinaryOp::kLe, shifted, number(6)), Dim(9)),
              ElementsAre("0-5: u", "5-9: 7"));
  EXPECT_THAT(parts(compare(BinaryOp::kLt, number(6), shifted), Dim(9)),
              ElementsAre("0-5: 7", "5-9: u"));
  EXPECT_THAT(parts(compare(BinaryOp::kLe, number(6), shifted), Dim(9)),
              ElementsAre("0-4: 7", "4-9: u"));
}

TEST(AxisParts, IsOneWhereNothingIsKnown) {
  const auto one = [](const ExprRef& body, const Dim& extent) {
    return parts_of(body, {v, extent}).size() == 1;
  };
  const ExprRef at_three = literal_int(i64, 3);
  EXPECT_TRUE(one(compare(BinaryOp::kLt, v, at_three), Dim::symbol("n")));
  EXPECT_TRUE(one(compare(BinaryOp::kLt, v, u), Dim(9)));
  EXPECT_TRUE(one(compare(BinaryOp::kLt, u, at_three), Dim(9)));
  EXPECT_TRUE(one(compare(BinaryOp::kLt, v + v, at_three), Dim(9)));
  EXPECT_TRUE(one(compare(BinaryOp::kLt, v, literal_int(i64, 9)), Dim(9)));
  EXPECT_TRUE(one(compare(BinaryOp::kLt, v + literal_int(i64, INT64_MIN), at_three), Dim(9)));
  ExprRef many = u;
  for (int64_t i = 1; i < 100; ++i) {
    many = select(binary(BinaryOp::kLt, v, literal_int(i64, i)), literal_int(i64, i), many);
  }
  EXPECT_TRUE(one(many, Dim(100)));
}

}  // namespace
}  // namespace tenon::loop
