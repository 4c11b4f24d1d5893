// Ensembles of decision trees of ai.onnx.ml. Their specification: docs/Operators-ml.md and
// Changelog-ml.md of ONNX.
//
// Where ONNX is vague, they compute what ONNX Runtime does. Where that contradicts ONNX, they
// follow ONNX: the label of a row is that of its greatest score, even if two classes have weights
// or a class has none, and base values are added to targets without weights. In those cases, models
// of a kind that converters don't write are refused.

#include <algorithm>
#include <cmath>
#include <tuple>

#include "import/onnx/class_scores.h"
#include "import/onnx/tree_table.h"
#include "support/text.h"

namespace tenon::onnx {

namespace {

using Numbers = std::vector<double>;

// A list of an attribute that may instead be a tensor, `NAME_as_tensor`, of doubles.
struct Reals {
  Numbers values;
  bool is_double = false;

  Reals(NodeContext& cx, const std::string& name) : values(cx.attr_floats(name.c_str())) {
    const std::string other = name + "_as_tensor";
    const Tensor t = cx.attr_tensor(other.c_str());
    if (!t) return;
    if (!values.empty()) cx.invalid(cat(name, " and ", other), "one of them");
    read(cx, other, t);
  }
  Reals(NodeContext& cx, const std::string& name, const Tensor& t) {
    if (!t) cx.invalid(cat("no attribute '", name, "'"), "a tensor of floats");
    read(cx, name, t);
  }

 private:
  void read(NodeContext& cx, const std::string& name, const Tensor& t) {
    if (!t.dtype().is_float()) cx.invalid(cat(name, " is ", to_text(t)), "floats");
    is_double = t.dtype() == f64;
    for (int64_t i = 0; i < t.count(); ++i) values.push_back(element(t, i));
  }
};

void require_size(NodeContext& cx, const char* name, size_t found, size_t expected) {
  if (found != expected) cx.invalid(cat(name, " has ", found, " entries"), cat(expected));
}

// One of a list of names, by its place.
int64_t place_of(NodeContext& cx, const char* attribute, const std::string& name,
                 std::span<const char* const> names, const char* expected) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) cx.invalid(cat(attribute, " holds '", printable(name), "'"), expected);
  return found - names.begin();
}

// ---- TreeEnsembleRegressor and TreeEnsembleClassifier ----

// The tests of library::TreeTest in its order, then the word for a leaf.
constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                  "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
constexpr int64_t kLeaf = std::size(kModes) - 1;
static_assert(kLeaf == static_cast<int64_t>(library::TreeTest::NotEqual) + 1);

// The nodes and weights of these operators. A node has a number that is unique in its tree; a
// tree's first node is its root.
class NumberedTrees {
 public:
  // `what` is "target" or "class".
  NumberedTrees(NodeContext& cx, const std::string& what) : cx_(cx) {
    read_nodes();
    read_weights(what);
  }

  TreeNodes trees;
  bool is_double = false;  // whether splits or weights are

 private:
  void read_nodes() {
    const Ints tree_ids = cx_.attr_ints("nodes_treeids"), ids = cx_.attr_ints("nodes_nodeids");
    const Ints if_true = cx_.attr_ints("nodes_truenodeids");
    const Ints if_false = cx_.attr_ints("nodes_falsenodeids");
    const std::vector<std::string> modes = cx_.attr_strings("nodes_modes");
    const Reals splits(cx_, "nodes_values");
    Ints missing = cx_.attr_ints("nodes_missing_value_tracks_true");
    for (const char* rates : {"nodes_hitrates", "nodes_hitrates_as_tensor"}) cx_.ignore(rates);
    trees.features = cx_.attr_ints("nodes_featureids");
    const size_t count = ids.size();
    if (missing.empty()) missing.resize(count);
    require_size(cx_, "nodes_treeids", tree_ids.size(), count);
    require_size(cx_, "nodes_truenodeids", if_true.size(), count);
    require_size(cx_, "nodes_falsenodeids", if_false.size(), count);
    require_size(cx_, "nodes_modes", modes.size(), count);
    require_size(cx_, "nodes_values", splits.values.size(), count);
    require_size(cx_, "nodes_missing_value_tracks_true", missing.size(), count);
    require_size(cx_, "nodes_featureids", trees.features.size(), count);
    trees.splits = splits.values;
    is_double = splits.is_double;
    for (size_t i = 0; i < count; ++i) {
      trees.tests.push_back(place_of(cx_, "nodes_modes", modes[i], kModes, "BRANCH_* or LEAF"));
      trees.missing_passes.push_back(missing[i] != 0);
      places_.emplace_back(tree_ids[i], ids[i], i);
      leaf_of_.push_back(trees.tests[i] == kLeaf ? trees.leaves++ : -1);
    }
    sort_places();
    trees.passed.resize(count);
    trees.failed.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (trees.tests[i] == kLeaf) continue;
      trees.passed[i] = branch_to(tree_ids[i], if_true[i]);
      trees.failed[i] = branch_to(tree_ids[i], if_false[i]);
    }
    add_roots();
  }

  void sort_places() {
    std::sort(places_.begin(), places_.end());
    for (size_t i = 1; i < places_.size(); ++i) {
      const auto& [tree, id, _] = places_[i];
      if (std::get<0>(places_[i - 1]) == tree && std::get<1>(places_[i - 1]) == id)
        cx_.invalid(cat("node ", id, " of tree ", tree, " twice"), "each node once");
    }
  }

  // In the order of the trees' first nodes.
  void add_roots() {
    std::vector<size_t> roots;
    for (size_t i = 0; i < places_.size();) {
      const int64_t tree = std::get<0>(places_[i]);
      size_t root = std::get<2>(places_[i]);
      for (; i < places_.size() && std::get<0>(places_[i]) == tree; ++i) {
        root = std::min(root, std::get<2>(places_[i]));
      }
      roots.push_back(root);
    }
    std::sort(roots.begin(), roots.end());
    for (const size_t root : roots) trees.roots.push_back(branch(root));
  }

  // The node or leaf at a place, as a branch.
  int64_t branch(size_t place) const {
    return leaf_of_[place] >= 0 ? -1 - leaf_of_[place] : static_cast<int64_t>(place);
  }

  size_t place_of_node(int64_t tree, int64_t id) const {
    const auto found =
        std::lower_bound(places_.begin(), places_.end(), std::tuple(tree, id, size_t{0}));
    if (found == places_.end() || std::get<0>(*found) != tree || std::get<1>(*found) != id)
      cx_.invalid(cat("node ", id, " of tree ", tree, ", which nothing defines"),
                  "a node's number");
    return std::get<2>(*found);
  }
  int64_t branch_to(int64_t tree, int64_t id) const { return branch(place_of_node(tree, id)); }

  void read_weights(const std::string& what) {
    const Ints tree_ids = cx_.attr_ints((what + "_treeids").c_str());
    const Ints ids = cx_.attr_ints((what + "_nodeids").c_str());
    const Reals weights(cx_, what + "_weights");
    trees.targets = cx_.attr_ints((what + "_ids").c_str());
    const size_t count = trees.targets.size();
    require_size(cx_, (what + "_treeids").c_str(), tree_ids.size(), count);
    require_size(cx_, (what + "_nodeids").c_str(), ids.size(), count);
    require_size(cx_, (what + "_weights").c_str(), weights.values.size(), count);
    trees.weights = weights.values;
    is_double |= weights.is_double;
    // Old converters give weights to nodes that are not leaves; they have no effect.
    for (size_t i = 0; i < count; ++i) {
      trees.leaf_of.push_back(leaf_of_[place_of_node(tree_ids[i], ids[i])]);
    }
  }

  NodeContext& cx_;
  using Place = std::tuple<int64_t, int64_t, size_t>;
  std::vector<Place> places_;  // the tree and number of each node, and where it is listed; sorted
  Ints leaf_of_;               // the leaf that a listed node is, or -1
};

// X in the type that the trees compute in.
Operand rows_for(NodeContext& cx, bool is_double) {
  return feature_rows(cx, is_double || cx.dtype(0) == f64 ? f64 : f32);
}

// scores + values, if there are any.
Operand with_base(NodeContext& cx, const Operand& scores, const Numbers& values) {
  if (values.empty()) return scores;
  const Ints shape = {static_cast<int64_t>(values.size())};
  return cx.add(scores, graph::constant(make_tensor(cx.dtype(scores), shape, values)));
}

Operands tree_ensemble_regressor(NodeContext& cx) {
  const NumberedTrees numbered(cx, "target");
  const Reals base(cx, "base_values");
  const int64_t targets = cx.attr_int("n_targets");
  const Transform transform = post_transform(cx);
  constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto aggregate = static_cast<Aggregate>(
      place_of(cx, "aggregate_function", cx.attr_string("aggregate_function", "SUM"), kAggregates,
               "AVERAGE, SUM, MIN or MAX"));
  if (targets < 1) cx.invalid(cat("n_targets=", targets), "1 or more");
  if (!base.values.empty())
    require_size(cx, "base_values", base.values.size(), static_cast<size_t>(targets));
  const Operand x = rows_for(cx, numbered.is_double || base.is_double);
  const Operand y =
      with_base(cx, tree_scores(cx, x, numbered.trees, targets, aggregate), base.values);
  return {transformed(cx, cx.cast(y, f32), targets, transform)};
}

// Two classes of which only one has weights: its score decides. If no weight is negative, scores
// are shares of 1.
Operands two_classes(NodeContext& cx, const ClassLabels& labels, NumberedTrees& numbered,
                     const Reals& base, Transform transform) {
  TreeNodes& trees = numbered.trees;
  const bool of_second = trees.targets[0] == 1;
  // ONNX Runtime and ONNX differ in what is added to which score.
  if (base.values.size() > (of_second ? 0 : 1)) {
    cx.unsupported(cat(base.values.size(), " base_values where only class ", of_second ? 1 : 0,
                       " of two has weights not implemented"));
  }
  const bool shares =
      std::none_of(trees.weights.begin(), trees.weights.end(), [](double w) { return w < 0; });
  std::fill(trees.targets.begin(), trees.targets.end(), 0);
  const Operand x = rows_for(cx, numbered.is_double || base.is_double);
  const Operand score = with_base(cx, tree_scores(cx, x, trees, 1, Aggregate::Sum), base.values);
  const Operand label = labels.at(cx, above(cx, score, shares ? 0.5 : 0));
  const Operand second = cx.cast(score, f32);
  if (!of_second) return {label, two_scores(cx, second, shares, transform)};
  const Operand first = cx.full(f32, 0, cx.dims(second));
  return {label, transformed(cx, cx.concat({first, second}, 1), 2, transform)};
}

// -> labels, scores
Operands tree_ensemble_classifier(NodeContext& cx) {
  NumberedTrees numbered(cx, "class");
  TreeNodes& trees = numbered.trees;
  const ClassLabels labels(cx, "classlabels_int64s", "classlabels_strings");
  const Reals base(cx, "base_values");
  const Transform transform = post_transform(cx);
  const auto classes = static_cast<int64_t>(labels.count());
  const bool one_weighs =
      !trees.targets.empty() && std::adjacent_find(trees.targets.begin(), trees.targets.end(),
                                                   std::not_equal_to<>()) == trees.targets.end();
  if (classes == 2 && one_weighs && trees.targets[0] >= 0 && trees.targets[0] <= 1)
    return two_classes(cx, labels, numbered, base, transform);
  if (!base.values.empty()) require_size(cx, "base_values", base.values.size(), labels.count());
  const Operand x = rows_for(cx, numbered.is_double || base.is_double);
  const Operand scores =
      with_base(cx, tree_scores(cx, x, trees, classes, Aggregate::Sum), base.values);
  const Operand y = transformed(cx, cx.cast(scores, f32), classes, transform);
  if (classes > 1) return {labels.at(cx, greatest(cx, scores)), y};
  // The class is the second of two, whose labels are then 0 and 1.
  if (labels.integers() != Ints{1})
    cx.unsupported("one class with a label other than 1 not implemented");
  return {above(cx, scores, 0), y};
}

// ---- TreeEnsemble ----

// A list with an entry per node.
Ints node_ints(NodeContext& cx, const char* name, size_t count) {
  Ints list = cx.attr_ints(name);
  require_size(cx, name, list.size(), count);
  return list;
}

// Branches to nodes or leaves, of which there are so many.
Ints branches(NodeContext& cx, const char* ids_name, const char* leaf_name, size_t nodes,
              int64_t leaves) {
  Ints to = node_ints(cx, ids_name, nodes);
  const Ints is_leaf = node_ints(cx, leaf_name, nodes);
  for (size_t i = 0; i < nodes; ++i) {
    const int64_t end = is_leaf[i] ? leaves : static_cast<int64_t>(nodes);
    if (to[i] < 0 || to[i] >= end) {
      cx.invalid(cat(ids_name, " holds ", to[i]),
                 cat("0 to ", end - 1, is_leaf[i] ? ", a leaf" : ", a node"));
    }
    if (is_leaf[i]) to[i] = -1 - to[i];
  }
  return to;
}

// The members of each node that tests for them; NaN ends a node's list.
void read_members(NodeContext& cx, TreeNodes* trees) {
  const Tensor t = cx.attr_tensor("membership_values");
  if (std::find(trees->tests.begin(), trees->tests.end(), TreeNodes::kMember) == trees->tests.end())
    return;
  trees->members = Reals(cx, "membership_values", t).values;
  trees->members_of.resize(trees->tests.size());
  size_t next = 0;
  for (size_t i = 0; i < trees->tests.size(); ++i) {
    if (trees->tests[i] != TreeNodes::kMember) continue;
    const size_t first = next;
    while (next < trees->members.size() && !std::isnan(trees->members[next])) ++next;
    trees->members_of[i] = {first, next};
    ++next;  // the NaN
  }
}

Operands tree_ensemble(NodeContext& cx) {
  TreeNodes trees;
  const Tensor modes = cx.attr_tensor("nodes_modes");
  if (!modes || modes.dtype() != u8) cx.invalid("no nodes_modes of u8", "a tensor of modes");
  trees.tests = cx.ints(graph::constant(modes)).value_or(Ints());
  const size_t count = trees.tests.size();
  const Reals splits(cx, "nodes_splits", cx.attr_tensor("nodes_splits"));
  const Reals weights(cx, "leaf_weights", cx.attr_tensor("leaf_weights"));
  cx.ignore("nodes_hitrates");
  const int64_t targets = cx.attr_int("n_targets");
  const int64_t aggregate = cx.attr_int("aggregate_function", 1);
  const int64_t transform = cx.attr_int("post_transform", 0);
  if (targets < 1) cx.invalid(cat("n_targets=", targets), "1 or more");
  if (aggregate < 0 || aggregate > 3) cx.invalid(cat("aggregate_function=", aggregate), "0 to 3");
  if (transform < 0 || transform > 4) cx.invalid(cat("post_transform=", transform), "0 to 4");
  for (const int64_t test : trees.tests) {
    if (test > TreeNodes::kMember)
      cx.invalid(cat("nodes_modes holds ", test), cat("0 to ", TreeNodes::kMember));
  }
  require_size(cx, "nodes_splits", splits.values.size(), count);
  trees.splits = splits.values;
  trees.features = node_ints(cx, "nodes_featureids", count);
  trees.missing_passes.resize(count);
  if (cx.has_attr("nodes_missing_value_tracks_true")) {
    const Ints missing = node_ints(cx, "nodes_missing_value_tracks_true", count);
    for (size_t i = 0; i < count; ++i) trees.missing_passes[i] = missing[i] != 0;
  }
  trees.targets = cx.attr_ints("leaf_targetids");
  trees.weights = weights.values;
  trees.leaves = static_cast<int64_t>(trees.targets.size());
  require_size(cx, "leaf_weights", weights.values.size(), trees.targets.size());
  for (int64_t i = 0; i < trees.leaves; ++i) trees.leaf_of.push_back(i);
  trees.passed = branches(cx, "nodes_truenodeids", "nodes_trueleafs", count, trees.leaves);
  trees.failed = branches(cx, "nodes_falsenodeids", "nodes_falseleafs", count, trees.leaves);
  read_members(cx, &trees);
  trees.roots = cx.attr_ints("tree_roots");
  for (const int64_t root : trees.roots) {
    if (root < 0 || root >= static_cast<int64_t>(count))
      cx.invalid(cat("tree_roots holds ", root), "the places of nodes");
  }
  const Operand x = rows_for(cx, splits.is_double || weights.is_double);
  const Operand y = tree_scores(cx, x, trees, targets, static_cast<Aggregate>(aggregate));
  return {cx.cast(transformed(cx, y, targets, static_cast<Transform>(transform)), cx.dtype(0))};
}

}  // namespace

void register_ml_trees(OpTable& t) {
  t.add("TreeEnsemble", 5, tree_ensemble, kMl);
  t.add("TreeEnsembleClassifier", 1, tree_ensemble_classifier, kMl);
  t.add("TreeEnsembleRegressor", 1, tree_ensemble_regressor, kMl);
}

}  // namespace tenon::onnx
