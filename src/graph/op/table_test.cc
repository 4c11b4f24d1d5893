#include "graph/ir/operator_name.h"
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

// Elements that are valid as indices and as divisors.
Tensor small(size_t operand, const Sample& sample, Random& random) {
  const auto* t = type_as<TensorType>(sample.operands[operand]);
  return t->dtype.is_float() ? Tensor()
                             : random_tensor(t->dtype, sample_shape(sample, operand), random, 0, 0);
}

TEST(Table, EveryOperatorHasASampleThatItsRuleTakesOrSaysWhyNot) {
  register_operators();
  for (const Operator* op : OperatorTable::global().all()) {
    SCOPED_TRACE(op->name);
    EXPECT_GT(std::string_view(op->summary).size(), 3u);
    EXPECT_NE(op->sample == nullptr, op->no_sample == nullptr) << "a sample, or why there is none";
    for (uint64_t seed = 0; op->sample && seed < 50; ++seed) {
      Sample s = op->sample(*op, seed);
      EXPECT_NO_THROW(infer_call(make_call(op->name, s.operands, s.attrs))) << "sample " << seed;
    }
  }
}

TEST(Table, HasEveryOperatorThatPassesKnowByName) {
  register_operators();
#define TENON_OPERATOR_NAME(name) EXPECT_TRUE(OperatorTable::global().find(#name)) << #name;
#include "graph/ir/operator_names.def"
}

// Lowerings must give the same elements for constant and symbolic sizes, whether or not inference
// can prove relations between the sizes.
TEST(Table, LoweringsAgreeForConstantAndSymbolicSizes) {
  register_operators();
  for (const Operator* op : OperatorTable::global().all()) {
    if (op->lower == nullptr || op->sample == nullptr) continue;
    std::string name = op->name;
    bool divides = name == "div" || name == "floor_div" || name == "mod" || name == "rem";
    try_samples(
        name, divides ? 0 : 40,
        [](const Trial& t) {
          for (size_t i = 0; i < t.results.size(); ++i) {
            expect_equal(t.results[i], Nd(t.with_constant_sizes[i]), 10);
          }
        },
        small);
  }
}

}  // namespace
}  // namespace tenon::graph
