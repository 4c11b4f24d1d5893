#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

TEST(Matmul, AgreesWithNumpysRule) {
  try_samples("matmul", 250, [](const Trial& t) {
    Nd a(t.operands[0]), b(t.operands[1]);
    bool row = a.shape.size() == 1, column = b.shape.size() == 1;
    if (row) a.shape.insert(a.shape.begin(), 1);
    if (column) b.shape.push_back(1);
    Index batch_a(a.shape.begin(), a.shape.end() - 2), batch_b(b.shape.begin(), b.shape.end() - 2);
    Index batch = batch_a.size() > batch_b.size() ? batch_a : batch_b;
    int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
    Index full = batch;
    full.insert(full.end(), {m, n});
    Nd want(full);
    for_each_index(full, [&](const Index& i) {
      Index at = i, bt = i;
      for (int64_t j = 0; j < k; ++j) {
        at.back() = j;
        bt[bt.size() - 2] = j;
        want.at(i) += a.broadcast(at) * b.broadcast(bt);
      }
    });
    if (column) want.shape.pop_back();
    if (row) want.shape.erase(want.shape.end() - (column ? 1 : 2));
    expect_equal(t.results[0], want);
  });
}

TEST(Matmul, BatchesOfOneRepeat) {
  Random random(1);
  Tensor a = random_tensor(f32, {1, 3, 2, 4}, random), b = random_tensor(f32, {5, 1, 4, 2}, random);
  EXPECT_EQ(shape_of_tensor(run("matmul", {a, b})), (Index{5, 3, 2, 2}));
}

TEST(Matmul, AnEmptySumIsZero) {
  Tensor y = run("matmul", {Tensor::empty({2, 0}, f32), Tensor::empty({0, 2}, f32)});
  EXPECT_EQ(Nd(y).data, std::vector<double>(4, 0));
}

TEST(Matmul, TypeErrorsNameTheAxes) {
  EXPECT_EQ(type_error("matmul", {tensor_type(f32, {2, 3}), tensor_type(f32, {4, 5})}),
            "operator 'matmul': last axis of 'a' and last but one axis of 'b' (the only one of a "
            "vector): 3 and 4 differ");
  EXPECT_EQ(type_error("matmul", {tensor_type(f32, {}), tensor_type(f32, {4})}),
            "operator 'matmul': operand 'a' has rank 0, expected at least 1");
}

}  // namespace
}  // namespace tenon::graph
