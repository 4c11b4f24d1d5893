// What models trained on tables compute that isn't a loop nest: ensembles of decision trees, and
// probabilities of classes from those of pairs. Packed functions of src/library/ml compute them.
#include "library/signatures/learned.h"
#include "graph/op/families.h"
#include "graph/op/packed.h"

namespace tenon::graph {
namespace {

// x, nodes, splits, roots, leaves, targets, weights
TypeRef infer_tree_ensemble(InferContext& cx) {
  for (const size_t matrix : {size_t{0}, size_t{1}}) require_rank(cx, matrix, 2);
  for (size_t list = 2; list < 7; ++list) require_rank(cx, list, 1);
  for (const size_t number : {size_t{2}, size_t{6}}) require_same_dtype(cx, number, 0);
  const TensorType &x = cx.tensor(0), &nodes = cx.tensor(1);
  cx.require_equal(nodes.dims[1], 4, "numbers of a node");
  cx.require_equal(nodes.dims[0], cx.tensor(2).dims[0], "nodes and splits");
  cx.require_less_equal(1, cx.tensor(4).dims[0], "places where leaves begin");
  cx.require_equal(cx.tensor(5).dims[0], cx.tensor(6).dims[0], "targets and weights");
  const int64_t outputs = cx.attr_int("outputs");
  if (outputs < 0) cx.fail(cat("'outputs' is ", outputs, ", expected 0 or more"));
  (void)one_of(cx, "aggregate", {library::kAggregateNames, std::end(library::kAggregateNames)});
  return tensor_type(x.dtype, {x.dims[0], outputs});
}

TypeRef infer_pairwise_coupling(InferContext& cx) {
  require_rank(cx, 0, 2);
  const TensorType& pairs = cx.tensor(0);
  const int64_t classes = cx.attr_int("classes");
  if (classes < 2 || classes > library::kMaxCoupledClasses)
    cx.fail(cat("'classes' is ", classes, ", expected 2 to ", library::kMaxCoupledClasses));
  cx.require_equal(pairs.dims[1], classes * (classes - 1) / 2, "pairs of classes");
  return tensor_type(pairs.dtype, {pairs.dims[0], classes});
}

Sample sample_pairwise_coupling(const Operator& op, uint64_t seed) {
  Random random(seed);
  const int64_t classes = random.between(2, 4);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes),
                         {random.between(0, 4), classes * (classes - 1) / 2})},
          attrs({{"classes", classes}})};
}

}  // namespace

void register_learned(OperatorTable& table) {
  const DtypeSet number = only(f32) | only(f64), index = only(i32);
  Operator trees = packed(
      "tree_ensemble", "tenon.tree_ensemble",
      {{"x", number},
       {"nodes", index},
       {"splits", number},
       {"roots", index},
       {"leaves", index},
       {"targets", index},
       {"weights", number}},
      {{"outputs", AttrKind::kInt, nullptr, "columns of the result"},
       {"aggregate", AttrKind::kString, "\"sum\"", "sum, min or max of the weights"}},
      "for each row of x and each output, the sum, least or greatest of the weights of the leaves "
      "that decision trees reach, 0 if there are none. A node is (feature, test, branch if it "
      "passes, branch if not): tests 0 to 5 are <=, <, >=, >, == and != of the feature and the "
      "node's split, 8 more lets NaN pass. A branch b >= 0 leads to node b, which must come after "
      "this one, b < 0 to leaf i = -1 - b, whose weights are those from leaves[i] up to "
      "leaves[i + 1], each for the output that 'targets' gives",
      infer_tree_ensemble, nullptr);
  trees.no_sample = "random integers aren't trees";
  table.add(std::move(trees));
  table.add(packed("pairwise_coupling", "tenon.pairwise_coupling", {{"pairs", number}},
                   {{"classes", AttrKind::kInt, nullptr, "how many"}},
                   "the probabilities of classes, from the probability of the first of the classes "
                   "0 and 1, 0 and 2, ... 1 and 2, ..., as libsvm couples them",
                   infer_pairwise_coupling, sample_pairwise_coupling));
}

}  // namespace tenon::graph
