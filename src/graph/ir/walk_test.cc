#include "graph/ir/walk.h"

#include <gtest/gtest.h>

namespace tenon::graph {
namespace {

std::vector<Operand> operands_of(const ExprRef& value) {
  std::vector<Operand> found;
  for_each_operand(value, [&](const Operand& o) { found.push_back(o); });
  return found;
}

size_t count_blocks(const ExprRef& value) {
  size_t count = 0;
  for_each_block(value, [&](const BlockRef&) { ++count; });
  return count;
}

// Of `value`, which has so many operands and blocks.
void expect_parts(const ExprRef& value, size_t operands, size_t blocks) {
  EXPECT_EQ(operands_of(value).size(), operands) << value->type_index;
  EXPECT_EQ(count_blocks(value), blocks) << value->type_index;
  const Operand other = make<Var>();
  const ExprRef mapped = map_operands(value, [&](const Operand&) { return other; });
  EXPECT_EQ(operands_of(mapped), std::vector(operands, other)) << value->type_index;
  EXPECT_EQ(count_blocks(mapped), blocks) << value->type_index;
}

TEST(Walk, ReadsAndMapsTheSameParts) {
  const Operand a = make<Var>(), b = make<Var>(), absent;
  const BlockRef block = make<Block>();
  expect_parts(make_call(CalleeKind::kOperator, "add", {a, absent, b}), 4, 0);  // and no closure
  expect_parts(make<FunctionExpr>(), 0, 1);
  expect_parts(make<If>(), 1, 2);
  auto loop = make<Loop>();
  loop->init = {a, b};
  expect_parts(loop, 2, 2);
  auto match = make<Match>();
  match->arms = {block, block, block};
  expect_parts(match, 1, 3);
  expect_parts(make<Tuple>(Array<Operand>{a, b, a}), 3, 0);
  expect_parts(make<Field>(a, 1), 1, 0);
  auto construct = make<Construct>();
  construct->fields = {a, b};
  expect_parts(construct, 2, 0);
  auto closure = make<Closure>();
  closure->captures = {a, b};
  expect_parts(closure, 2, 0);
  expect_parts(make<Size>(), 0, 0);
  expect_parts(make<MatchShape>(a, Array<Dim>(), false), 1, 0);
  expect_parts(make<Check>(), 0, 0);
}

TEST(Walk, RefusesWhatIsNoRightHandSide) {
  const ExprRef variable = make<Var>();
  EXPECT_THROW(operands_of(variable), Error);
  EXPECT_THROW(count_blocks(variable), Error);
}

}  // namespace
}  // namespace tenon::graph
