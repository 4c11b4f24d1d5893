#include "import/onnx/tree_table.h"

#include <algorithm>
#include <limits>
#include <span>

#include "support/poll.h"

namespace tenon::onnx {

namespace {

using Ids = std::vector<int32_t>;

Operand constant_of(const Ids& values, const Ints& shape) {
  return graph::constant(
      Tensor::copy_of(std::span<const int64_t>(shape), i32, std::span<const int32_t>(values))
          .as_read_only());
}

Operand constant_of(const Ids& values) {
  return constant_of(values, {static_cast<int64_t>(values.size())});
}

// Lays out the nodes that the roots lead to, each before those that it leads to.
class Layout {
 public:
  Layout(NodeContext& cx, const TreeNodes& trees) : cx_(cx), trees_(trees) {
    placed_.resize(trees.features.size());
    for (const int64_t root : trees.roots) {
      roots.push_back(0);
      waiting_.push_back({root, 0, 0, kRoot});
      while (!waiting_.empty()) {
        poll();
        const Branch next = waiting_.back();
        waiting_.pop_back();
        lead(next, next.to < 0 ? static_cast<int32_t>(next.to) : add(next.to));
      }
    }
  }

  Ids nodes;  // four numbers of each
  std::vector<double> splits;
  Ids roots;
  int64_t features = 0;  // that the nodes read

 private:
  enum Side : size_t { kPassed = 2, kFailed = 3, kRoot };
  // The rows first up to end of the table lead to node or leaf `to`.
  struct Branch {
    int64_t to;
    size_t first, end;
    Side side;
  };

  void lead(const Branch& branch, int32_t to) {
    if (branch.side == kRoot) roots.back() = to;
    for (size_t row = branch.first; row < branch.end; ++row) nodes[4 * row + branch.side] = to;
  }

  // Adds the rows of a node and returns the first. A test of several members is a row for each,
  // which leads to the next if it fails.
  int32_t add(int64_t node) {
    const auto i = static_cast<size_t>(node);
    if (placed_[i]) cx_.invalid(cat("node ", i, ", which two branches lead to"), "trees");
    placed_[i] = true;
    const int64_t feature = trees_.features[i];
    if (feature < 0 || feature > std::numeric_limits<int32_t>::max())
      cx_.invalid(cat("a node of feature ", feature), "0 or more");
    features = std::max(features, feature + 1);
    const size_t first = splits.size();
    int64_t test = trees_.tests[i];
    std::span<const double> values(&trees_.splits[i], 1);
    if (test == TreeNodes::kMember) {
      test = static_cast<int64_t>(library::TreeTest::Equal);
      const TreeNodes::Members& members = trees_.members_of[i];
      values = std::span(trees_.members).subspan(members.first, members.end - members.first);
      // Nothing equals NaN.
      static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
      if (values.empty()) values = std::span(&kNone, 1);
    }
    if (trees_.missing_passes[i]) test += library::kOrMissing;
    for (const double value : values) {
      const auto next = static_cast<int32_t>(splits.size() + 1);
      nodes.insert(nodes.end(),
                   {static_cast<int32_t>(feature), static_cast<int32_t>(test), 0, next});
      splits.push_back(value);
    }
    const size_t end = splits.size();
    if (end > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      cx_.unsupported(cat(end, " nodes not implemented"));
    waiting_.push_back({trees_.failed[i], end - 1, end, kFailed});
    waiting_.push_back({trees_.passed[i], first, end, kPassed});
    return static_cast<int32_t>(first);
  }

  NodeContext& cx_;
  const TreeNodes& trees_;
  std::vector<bool> placed_;
  std::vector<Branch> waiting_;
};

// The weights in the order of their leaves.
struct Leaves {
  Ids begins, targets;
  std::vector<double> weights;

  explicit Leaves(const TreeNodes& trees) {
    std::vector<size_t> counts(static_cast<size_t>(trees.leaves) + 1);
    for (const int64_t leaf : trees.leaf_of) {
      if (leaf >= 0) ++counts[static_cast<size_t>(leaf) + 1];
    }
    for (size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
    begins.assign(counts.begin(), counts.end());
    targets.resize(counts.back());
    weights.resize(counts.back());
    for (size_t i = 0; i < trees.leaf_of.size(); ++i) {
      if (trees.leaf_of[i] < 0) continue;
      const size_t at = counts[static_cast<size_t>(trees.leaf_of[i])]++;
      targets[at] = static_cast<int32_t>(trees.targets[i]);
      weights[at] = trees.weights[i];
    }
  }
};

void check_features(NodeContext& cx, const Operand& x, int64_t features) {
  const Dim columns = cx.dims(x)[1];
  if (const auto found = columns.as_const(); found && *found < features)
    cx.invalid(cat("X with ", *found, " features"), cat(features, " or more, as the trees read"));
  cx.b.check(graph::CheckKind::kLessEqual, features, columns,
             "features that the trees read and columns of X");
}

// The name of what tree_ensemble computes; an average is a sum that is divided.
String joined_by(Aggregate aggregate) {
  const auto kind = aggregate == Aggregate::Min   ? library::Aggregate::Min
                    : aggregate == Aggregate::Max ? library::Aggregate::Max
                                                  : library::Aggregate::Sum;
  return String(library::kAggregates.names[static_cast<size_t>(kind)]);
}

}  // namespace

Operand tree_scores(NodeContext& cx, const Operand& x, const TreeNodes& trees, int64_t outputs,
                    Aggregate aggregate) {
  for (const int64_t target : trees.targets) {
    if (target < 0 || target >= outputs)
      cx.invalid(cat("a leaf's weight for ", target), cat("0 to ", outputs - 1));
  }
  const Layout layout(cx, trees);
  check_features(cx, x, layout.features);
  const Leaves leaves(trees);
  const auto count = static_cast<int64_t>(layout.splits.size());
  const DataType dtype = cx.dtype(x);
  auto floats = [&](const std::vector<double>& values) {
    return graph::constant(make_tensor(dtype, {static_cast<int64_t>(values.size())}, values));
  };
  Operand y = cx.op(
      "tree_ensemble",
      {x, constant_of(layout.nodes, {count, 4}), floats(layout.splits), constant_of(layout.roots),
       constant_of(leaves.begins), constant_of(leaves.targets), floats(leaves.weights)},
      graph::attrs({{"outputs", outputs}, {"aggregate", joined_by(aggregate)}}));
  if (aggregate != Aggregate::Average) return y;
  return cx.div(y, cx.scalar(dtype, static_cast<double>(layout.roots.size())));
}

}  // namespace tenon::onnx
