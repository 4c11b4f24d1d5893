#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "library/argument/call_testing.h"
#include "library/ml/register.h"
#include "object/library.h"

namespace tenon::ml {
namespace {

using namespace testing_calls;

// Registers the functions before any test calls one.
const Module library = (register_ml(), load_library("tenon_ml", {}));

using Ids = std::vector<int32_t>;

// The operands of tenon.tree_ensemble.
struct Trees {
  std::vector<Ids> nodes;
  Floats splits;
  Ids roots, leaves, targets;
  Floats weights;
  DataType dtype = f32;

  Tensor list(const Ids& values) const {
    return tensor<int32_t>(i32, {static_cast<int64_t>(values.size())}, values);
  }
  Tensor numbers(std::vector<int64_t> shape, const Floats& values) const {
    if (dtype == f32) return floats(std::move(shape), values);
    return tensor<double>(f64, std::move(shape), {values.begin(), values.end()});
  }
  Tensor table() const {
    Ids flat;
    for (const Ids& node : nodes) flat.insert(flat.end(), node.begin(), node.end());
    return tensor<int32_t>(i32, {static_cast<int64_t>(nodes.size()), 4}, flat);
  }
  Any call_on(const Tensor& x, int64_t outputs = 1, int64_t aggregate = 0) const {
    const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
    return call("tenon.tree_ensemble", x, table(), numbers({count(splits)}, splits), list(roots),
                list(leaves), list(targets), numbers({count(weights)}, weights), outputs,
                aggregate);
  }
  // Of a column of numbers.
  Floats of(const Floats& x, int64_t outputs = 1, int64_t aggregate = 0) const {
    const Tensor y =
        call_on(numbers({static_cast<int64_t>(x.size()), 1}, x), outputs, aggregate).as<Tensor>();
    if (dtype == f32) return data_of<float>(y);
    Floats out;
    for (double v : data_of<double>(y)) out.push_back(static_cast<float>(v));
    return out;
  }
  std::string failure_on(const Tensor& x, int64_t outputs = 1, int64_t aggregate = 0) const {
    try {
      call_on(x, outputs, aggregate);
    } catch (const Error& e) {
      return e.message();
    }
    return "no error";
  }
};

// 10 where the feature passes the test, else 20.
Trees stump(int32_t test, float split = 1) {
  return {{{0, test, -1, -2}}, {split}, {0}, {0, 1, 2}, {0, 0}, {10, 20}};
}

TEST(TreeEnsemble, ComparesByTheNodesTest) {
  const Floats x = {0, 1, 2, NAN};
  const float p = 10, n = 20;
  EXPECT_EQ(stump(0).of(x), (Floats{p, p, n, n}));
  EXPECT_EQ(stump(1).of(x), (Floats{p, n, n, n}));
  EXPECT_EQ(stump(2).of(x), (Floats{n, p, p, n}));
  EXPECT_EQ(stump(3).of(x), (Floats{n, n, p, n}));
  EXPECT_EQ(stump(4).of(x), (Floats{n, p, n, n}));
  EXPECT_EQ(stump(5).of(x), (Floats{p, n, p, p}));
}

TEST(TreeEnsemble, MissingValuesPassWhereTheTestSaysSo) {
  for (int32_t test = 0; test < 6; ++test) {
    EXPECT_EQ(stump(test + 8).of({0, 1, 2}), stump(test).of({0, 1, 2}));
    EXPECT_EQ(stump(test + 8).of({NAN}), Floats{10});
  }
}

TEST(TreeEnsemble, ComputesInDoubles) {
  Trees t = stump(0);
  t.dtype = f64;
  EXPECT_EQ(t.of({0, 1, 2}), (Floats{10, 10, 20}));
}

// Two trees, of which the second is a leaf, and a leaf with weights of two outputs.
Trees two_trees() {
  return {{{0, 0, 1, -1}, {0, 0, -2, -3}},
          {4, 2},
          {0, -3},
          {0, 1, 3, 4},
          {0, 0, 1, 1},
          {1, -20, 30, 400}};
}

TEST(TreeEnsemble, SumsTheWeightsOfAllTrees) {
  EXPECT_EQ(two_trees().of({5, 3, 1}, 2), (Floats{1, 400, 0, 800, -20, 430}));
}

TEST(TreeEnsemble, TakesTheLeastOrGreatestWeight) {
  EXPECT_EQ(two_trees().of({5, 3, 1}, 2, 1), (Floats{1, 400, 0, 400, -20, 30}));
  EXPECT_EQ(two_trees().of({5, 3, 1}, 2, 2), (Floats{1, 400, 0, 400, -20, 400}));
}

TEST(TreeEnsemble, OfNoTreesIsZero) {
  EXPECT_EQ((Trees{{}, {}, {}, {0}, {}, {}}).of({1, 2}), (Floats{0, 0}));
}

TEST(TreeEnsemble, OfNoRowsIsEmpty) {
  const Trees t = stump(0);
  EXPECT_EQ(shape_of(t.call_on(floats({0, 1}, {})).as<Tensor>()), (Ints{0, 1}));
  EXPECT_EQ(shape_of(t.call_on(floats({3, 1}, {1, 2, 3}), 0).as<Tensor>()), (Ints{3, 0}));
}

// A full tree of this depth whose nodes are in the order of their levels, with random features,
// splits and weights.
Trees random_tree(int depth, int32_t features, std::mt19937_64& random) {
  Trees t;
  const int32_t nodes = (1 << depth) - 1;
  std::uniform_real_distribution<float> number(-1, 1);
  for (int32_t i = 0; i < nodes; ++i) {
    auto child = [&](int32_t at) { return at < nodes ? at : nodes - at - 1; };
    t.nodes.push_back({std::uniform_int_distribution<int32_t>(0, features - 1)(random), 0,
                       child(2 * i + 1), child(2 * i + 2)});
    t.splits.push_back(number(random));
  }
  t.roots = {0};
  for (int32_t i = 0; i <= nodes + 1; ++i) t.leaves.push_back(i);
  t.targets.assign(static_cast<size_t>(nodes) + 1, 0);
  for (int32_t i = 0; i <= nodes; ++i) t.weights.push_back(number(random));
  return t;
}

// The sum in the order of the trees.
float sum_of(const Trees& trees, const float* row) {
  float sum = 0;
  for (int32_t at : trees.roots) {
    while (at >= 0) {
      const Ids& node = trees.nodes[static_cast<size_t>(at)];
      at = row[node[0]] <= trees.splits[static_cast<size_t>(at)] ? node[2] : node[3];
    }
    sum += trees.weights[static_cast<size_t>(-1 - at)];
  }
  return sum;
}

TEST(TreeEnsemble, WalksManyRows) {
  std::mt19937_64 random(3);
  constexpr int64_t rows = 5000, features = 4;
  const Trees t = random_tree(6, features, random);
  std::uniform_real_distribution<float> number(-1, 1);
  Floats x(rows * features);
  for (float& v : x) v = number(random);
  const Floats y = data_of<float>(t.call_on(floats({rows, features}, x)).as<Tensor>());
  for (size_t row = 0; row < rows; ++row)
    ASSERT_EQ(y[row], sum_of(t, x.data() + row * features)) << row;
}

// Adds a tree's nodes and leaves to those of a forest.
void append(Trees* forest, const Trees& tree) {
  const auto nodes = static_cast<int32_t>(forest->nodes.size());
  const auto leaves = static_cast<int32_t>(forest->weights.size());
  const auto moved = [&](int32_t branch) { return branch < 0 ? branch - leaves : branch + nodes; };
  for (const Ids& node : tree.nodes)
    forest->nodes.push_back({node[0], node[1], moved(node[2]), moved(node[3])});
  forest->splits.insert(forest->splits.end(), tree.splits.begin(), tree.splits.end());
  forest->roots.push_back(moved(tree.roots[0]));
  for (const float weight : tree.weights) {
    forest->weights.push_back(weight);
    forest->targets.push_back(0);
    forest->leaves.push_back(static_cast<int32_t>(forest->weights.size()));
  }
}

TEST(TreeEnsemble, AddsInTheOrderOfTheTreesWhateverTheirDepths) {
  std::mt19937_64 random(5);
  constexpr int32_t kFeatures = 3;
  Trees forest{{}, {}, {}, {0}, {}, {}};
  for (int i = 0; i < 90; ++i)
    append(&forest, i % 9 == 0 ? Trees{{}, {}, {-1}, {0, 1}, {0}, {0.1F}}
                               : random_tree(1 + i % 7, kFeatures, random));
  std::uniform_real_distribution<float> number(-1, 1);
  for (const int64_t rows : {1, 3, 9, 70, 300}) {
    Floats x(static_cast<size_t>(rows * kFeatures));
    for (float& v : x) v = number(random);
    const Floats y = data_of<float>(forest.call_on(floats({rows, kFeatures}, x)).as<Tensor>());
    for (size_t row = 0; row < y.size(); ++row)
      ASSERT_EQ(y[row], sum_of(forest, x.data() + row * kFeatures)) << rows << ", " << row;
  }
}

TEST(TreeEnsemble, RefusesBranchesThatDoNotLeadOn) {
  const Tensor x = floats({1, 1}, {0});
  Trees t = stump(0);
  t.nodes[0][2] = 0;
  EXPECT_EQ(t.failure_on(x), "tenon.tree_ensemble: a branch from node 0 to node 0 of 1");
  t.nodes[0][2] = 1;
  EXPECT_EQ(t.failure_on(x), "tenon.tree_ensemble: a branch from node 0 to node 1 of 1");
  t.roots = {std::numeric_limits<int32_t>::max()};
  EXPECT_EQ(t.failure_on(x), "tenon.tree_ensemble: a branch from node -1 to node 2147483647 of 1");
}

TEST(TreeEnsemble, RefusesBackwardBranches) {
  Trees t = stump(0);
  t.nodes = {{0, 0, 1, 1}, {0, 0, 0, 0}};
  t.splits = {1, 1};
  EXPECT_EQ(t.failure_on(floats({1, 1}, {0})),
            "tenon.tree_ensemble: a branch from node 1 to node 0 of 2");
}

TEST(TreeEnsemble, RefusesNumbersOutOfRange) {
  const Tensor x = floats({1, 1}, {0});
  const int32_t least = std::numeric_limits<int32_t>::min();
  auto with = [&](auto change) {
    Trees t = stump(0);
    change(t);
    return t.failure_on(x);
  };
  EXPECT_EQ(with([](Trees& t) { t.nodes[0][0] = 1; }),
            "tenon.tree_ensemble: feature 1 of rows of 1");
  EXPECT_EQ(with([](Trees& t) { t.nodes[0][0] = -1; }),
            "tenon.tree_ensemble: feature -1 of rows of 1");
  EXPECT_EQ(with([](Trees& t) { t.nodes[0][1] = 6; }), "tenon.tree_ensemble: a node with test 6");
  EXPECT_EQ(with([](Trees& t) { t.nodes[0][1] = 14; }), "tenon.tree_ensemble: a node with test 6");
  EXPECT_EQ(with([](Trees& t) { t.nodes[0][1] = -1; }), "tenon.tree_ensemble: a node with test -1");
  EXPECT_EQ(with([](Trees& t) { t.nodes[0][2] = -3; }), "tenon.tree_ensemble: leaf 2 of 2");
  EXPECT_EQ(with([&](Trees& t) { t.roots[0] = least; }),
            "tenon.tree_ensemble: leaf 2147483647 of 2");
  EXPECT_EQ(with([](Trees& t) { t.leaves[1] = 3; }), "tenon.tree_ensemble: weights 0 to 3 of 2");
  EXPECT_EQ(with([](Trees& t) { t.leaves[0] = -1; }), "tenon.tree_ensemble: weights -1 to 1 of 2");
  EXPECT_EQ(with([](Trees& t) { t.targets[0] = 1; }), "tenon.tree_ensemble: target 1 of 1 outputs");
  EXPECT_EQ(with([](Trees& t) { t.targets[0] = -1; }),
            "tenon.tree_ensemble: target -1 of 1 outputs");
}

TEST(TreeEnsemble, RefusesTensorsThatDoNotFit) {
  const Trees t = stump(0);
  EXPECT_EQ(t.failure_on(floats({1}, {0})),
            "tenon.tree_ensemble: 'x' is tensor[1; f32], expected f32 of rank 2");
  EXPECT_EQ(t.failure_on(tensor<double>(f64, {1, 1}, {0})),
            "tenon.tree_ensemble: 'splits' is tensor[1; f32], expected f64 of rank 1");
  EXPECT_EQ(t.failure_on(ints({1})), "tenon.tree_ensemble: 'x' is i64, expected f32 or f64");
  EXPECT_EQ(t.failure_on(floats({1, 1}, {0}), 1, 3),
            "tenon.tree_ensemble: 'aggregate' is 3, expected 0 to 2");
  EXPECT_EQ(t.failure_on(floats({1, 0}, {})), "tenon.tree_ensemble: feature 0 of rows of 0");
  auto with = [&](auto change) {
    Trees changed = stump(0);
    change(changed);
    return changed.failure_on(floats({1, 1}, {0}));
  };
  EXPECT_EQ(with([](Trees& c) { c.splits.clear(); }), "tenon.tree_ensemble: 0 splits of 1 nodes");
  EXPECT_EQ(with([](Trees& c) { c.weights.clear(); }),
            "tenon.tree_ensemble: 2 targets of 0 weights");
  EXPECT_EQ(with([](Trees& c) { c.leaves.clear(); }),
            "tenon.tree_ensemble: 'leaves' is empty, expected where the first leaf begins");
  const Tensor one = floats({1}, {0}), list = t.list({0});
  EXPECT_EQ(failure("tenon.tree_ensemble", floats({1, 1}, {0}),
                    tensor<int32_t>(i32, {1, 3}, {0, 0, 0}), one, list, list, list, one, 1, 0),
            "tenon.tree_ensemble: 'nodes' is tensor[1, 3; i32], expected [nodes, 4]");
}

// Whatever the numbers are, a call ends with results or an error.
TEST(TreeEnsemble, SurvivesAnyNumbers) {
  std::mt19937_64 random(11);
  auto number = [&](int32_t low, int32_t high) {
    if (std::uniform_int_distribution<int>(0, 40)(random) == 0)
      return static_cast<int32_t>(random());
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  int done = 0;
  for (int i = 0; i < 4000; ++i) {
    Trees t;
    const int32_t nodes = 6, leaves = 4;
    for (int32_t n = 0; n < nodes; ++n) {
      t.nodes.push_back({number(0, 1), number(0, 5) + (number(0, 1) ? 8 : 0),
                         number(-leaves, nodes - 1), number(-leaves, nodes - 1)});
      t.splits.push_back(static_cast<float>(number(-1, 1)));
    }
    t.roots = {0, number(-leaves, 2)};
    t.leaves = {0, number(0, 2), 2, number(1, 3), number(2, 4)};
    t.targets = {0, 1, number(0, 1), 0};
    t.weights = {1, 2, 3, 4};
    const Tensor x = floats({2, 2}, {0, 1, NAN, -1});
    if (t.failure_on(x, 2, number(0, 2)) == "no error") ++done;
  }
  EXPECT_GT(done, 100);
  EXPECT_LT(done, 3900);
}

TEST(TreeEnsemble, Stops) {
  std::mt19937_64 random(3);
  const Trees t = random_tree(10, 1, random);
  TestCall context;
  context.stopped = true;
  CallContext::Scope scope(&context);
  EXPECT_EQ(t.failure_on(floats({20000, 1}, Floats(20000))), "stopped");
}

TEST(PairwiseCoupling, OfTwoClassesIsCloseToThePair) {
  const Tensor y = result("tenon.pairwise_coupling", floats({3, 1}, {0.5f, 0.9f, 0.01f}), 2);
  const Floats p = data_of<float>(y);
  const Floats expected = {0.5f, 0.5f, 0.9f, 0.1f, 0.01f, 0.99f};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(p[i], expected[i], 0.02f);
}

// p has the pairs p[i] / (p[i] + p[j]).
TEST(PairwiseCoupling, FindsTheProbabilitiesThatPairsComeFrom) {
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  std::vector<double> pairs;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = i + 1; j < 4; ++j) pairs.push_back(p[i] / (p[i] + p[j]));
  }
  const Tensor y = result("tenon.pairwise_coupling", tensor<double>(f64, {1, 6}, pairs), 4);
  const auto found = data_of<double>(y);
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found[i], p[i], 0.005);
    sum += found[i];
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(PairwiseCoupling, OfNoRowsIsEmpty) {
  EXPECT_EQ(shape_of(result("tenon.pairwise_coupling", floats({0, 3}, {}), 3)), (Ints{0, 3}));
}

TEST(PairwiseCoupling, RefusesOtherPairs) {
  EXPECT_EQ(failure("tenon.pairwise_coupling", floats({1, 2}, {0, 0}), 3),
            "tenon.pairwise_coupling: 'pairs' is tensor[1, 2; f32], expected [rows, 3]");
  EXPECT_EQ(failure("tenon.pairwise_coupling", floats({1, 0}, {}), 1),
            "tenon.pairwise_coupling: 1 classes, expected 2 to 32768");
  EXPECT_EQ(failure("tenon.pairwise_coupling", floats({1, 0}, {}), int64_t{1} << 62),
            "tenon.pairwise_coupling: 4611686018427387904 classes, expected 2 to 32768");
  EXPECT_EQ(failure("tenon.pairwise_coupling", ints({1}), 2),
            "tenon.pairwise_coupling: 'pairs' is i64, expected f32 or f64");
}

TEST(PairwiseCoupling, Stops) {
  TestCall context;
  context.stopped = true;
  CallContext::Scope scope(&context);
  EXPECT_EQ(failure("tenon.pairwise_coupling", floats({20000, 3}, Floats(60000, 0.5f)), 3),
            "stopped");
}

}  // namespace
}  // namespace tenon::ml
