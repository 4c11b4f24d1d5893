// Ensembles of decision trees.
//
// A tensor i32[nodes, 4] has a row per node:
//
//     | feature | test | branch if the test passes | branch if not |
//
// A node compares a row's feature with its split, splits[node]. A branch b >= 0 leads to node b,
// which must come after this one, so that every walk ends; a branch b < 0 to leaf -1 - b. A tree is
// the branch to its root. Leaf i adds weights[j] to the output targets[j] for each j from leaves[i]
// up to leaves[i + 1].
//
// Every number of these tensors is loaded once and checked where it is used: walks touch few of the
// nodes, and tensors from a host may change at any time.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "device/parallel.h"
#include "device/scratch.h"
#include "library/argument/argument.h"
#include "library/ml/functions.h"
#include "support/bulk.h"
#include "support/poll.h"

namespace tenon::ml {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.tree_ensemble";

using library::Aggregate, library::TreeTest, library::kAggregates;

struct Node {
  int32_t feature, test;
  int32_t branches[2];  // if the test passes, if not
};

constexpr int64_t kBlock = 64;          // rows that walk a tree before the next tree
constexpr size_t kTogether = 8;         // walks at a time
constexpr size_t kSeries = 512;         // walks whose leaves are added afterwards
constexpr int64_t kStepsWorth = 16384;  // nodes to visit that are worth another thread

// Element i of memory that may be unaligned.
template <class T>
T load(const char* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
bool passes(T value, T split, int32_t test) {
  if (test == static_cast<int32_t>(TreeTest::AtMost)) [[likely]]  // a jump that is predicted
    return value <= split;
  if (test >= library::kOrMissing) {
    if (value != value) return true;
    test -= library::kOrMissing;
  }
  switch (static_cast<TreeTest>(test)) {
    case TreeTest::AtMost:
      return value <= split;
    case TreeTest::Less:
      return value < split;
    case TreeTest::AtLeast:
      return value >= split;
    case TreeTest::Greater:
      return value > split;
    case TreeTest::Equal:
      return value == split;
    case TreeTest::NotEqual:
      return value != split;
  }
  fail(kName, cat("a node with test ", test));
}

const char* bytes_of(const Tensor& t) {
  return t.data_as<char>();
}

void require(std::string_view name, const Tensor& t, DataType dtype, int32_t rank) {
  require_host(kName, name, t);
  if (t.dtype() != dtype || t.rank() != rank)
    fail(kName,
         cat("'", name, "' is ", to_text(t), ", expected ", to_text(dtype), " of rank ", rank));
}

// The ensemble, whose splits and weights are T, and the results.
template <class T>
class Ensemble {
 public:
  Ensemble(const Tensor& x, const Tensor& nodes, const Tensor& splits, const Tensor& roots,
           const Tensor& leaves, const Tensor& targets, const Tensor& weights, const Tensor& y,
           Aggregate aggregate)
      : x_(bytes_of(x)),
        nodes_(bytes_of(nodes)),
        splits_(bytes_of(splits)),
        roots_(bytes_of(roots)),
        leaves_(bytes_of(leaves)),
        targets_(bytes_of(targets)),
        weights_(bytes_of(weights)),
        y_(y.data_as<T>()),
        rows_(x.dim(0)),
        features_(x.dim(1)),
        node_count_(nodes.dim(0)),
        tree_count_(roots.dim(0)),
        leaf_count_(leaves.dim(0) - 1),
        weight_count_(weights.dim(0)),
        outputs_(y.dim(1)),
        aggregate_(aggregate) {
    if (aggregate == Aggregate::Sum) return;
    has_weight_.resize(static_cast<size_t>(y.count()));
    fill_memory(has_weight_.data(), 0, has_weight_.size());
  }

  void run() {
    constexpr int64_t kStepsPerTree = 8;  // a guess: depths differ
    const int64_t steps = std::max<int64_t>(tree_count_, 1) * kStepsPerTree;
    parallel_for(rows_, std::max<int64_t>(kStepsWorth / steps, 1), [&](int64_t begin, int64_t end) {
      Ticker ticker;
      for (int64_t i = begin; i < end; i += kBlock) add_rows(i, std::min(i + kBlock, end), ticker);
    });
  }

 private:
  struct Walk {
    const char* values;  // its row
    int32_t branch;      // that it takes next
    size_t number;       // its place in the series
  };

  // A tree and a row. In order: all rows of a block, then the next tree, which then stays in the
  // cache.
  struct Place {
    int64_t tree, row;
  };

  void add_rows(int64_t begin, int64_t end, Ticker& ticker) {
    const size_t bytes = static_cast<size_t>((end - begin) * outputs_) * sizeof(T);
    fill_memory(y_ + begin * outputs_, 0, bytes);
    ticker.tick(bytes);
    auto advance = [&](Place& place) {
      if (++place.row < end) return;
      ++place.tree;
      place.row = begin;
    };
    // Walks end in any order, but weights are added in that of the trees.
    int32_t leaves[kSeries];
    Place next{0, begin}, added{0, begin};
    const auto start = [&](size_t number) {
      const auto root = load<int32_t>(roots_, next.tree);
      check_branch(-1, root);
      const Walk walk{x_ + next.row * features_ * static_cast<int64_t>(sizeof(T)), root, number};
      advance(next);
      return walk;
    };
    const auto walks = static_cast<size_t>((end - begin) * tree_count_);
    for (size_t done = 0; done < walks; done += kSeries) {
      const size_t count = std::min(kSeries, walks - done);
      walk_series(std::span(leaves, count), start, ticker);
      for (size_t i = 0; i < count; ++i, advance(added))
        add_leaf(added.row, -1 - static_cast<int64_t>(leaves[i]), ticker);
    }
  }

  // Sets leaves[i] to the branch at which walk i, start(i), ends. Takes a step of each of some
  // walks in turn, since the next step of one waits for memory; where one ends, another starts.
  template <class Start>
  void walk_series(std::span<int32_t> leaves, const Start& start, Ticker& ticker) const {
    Walk walks[kTogether];
    size_t started = 0, walking = 0;
    while (walking < kTogether && started < leaves.size()) walks[walking++] = start(started++);
    while (walking > 0) {
      for (size_t i = 0; i < walking;) {
        Walk& walk = walks[i];
        if (walk.branch >= 0) walk.branch = step(walk);
        if (walk.branch >= 0) [[likely]] {
          ++i;
          continue;
        }
        leaves[walk.number] = walk.branch;
        if (started < leaves.size()) {
          walk = start(started++);
          ++i;
        } else {
          walk = walks[--walking];
        }
      }
      ticker.tick(kTogether * sizeof(Node));
    }
  }

  // The branch that a walk takes from its node.
  int32_t step(const Walk& walk) const {
    const int32_t at = walk.branch;
    const char* node = nodes_ + at * static_cast<int64_t>(sizeof(Node));
    const auto feature = load<int32_t>(node + offsetof(Node, feature), 0);
    if (feature < 0 || feature >= features_) [[unlikely]]
      fail(kName, cat("feature ", feature, " of rows of ", features_));
    const bool passed = passes(load<T>(walk.values, feature), load<T>(splits_, at),
                               load<int32_t>(node + offsetof(Node, test), 0));
    // An index: a jump would be mispredicted.
    const auto to = load<int32_t>(node + offsetof(Node, branches), passed ? 0 : 1);
    check_branch(at, to);
    return to;
  }

  void check_branch(int32_t from, int32_t to) const {
    if (to >= 0 && (to <= from || to >= node_count_))
      fail(kName, cat("a branch from node ", from, " to node ", to, " of ", node_count_));
  }

  void add_leaf(int64_t row, int64_t leaf, Ticker& ticker) {
    if (leaf >= leaf_count_) fail(kName, cat("leaf ", leaf, " of ", leaf_count_));
    const int64_t begin = load<int32_t>(leaves_, leaf), end = load<int32_t>(leaves_, leaf + 1);
    if (begin < 0 || end > weight_count_)
      fail(kName, cat("weights ", begin, " to ", end, " of ", weight_count_));
    for (int64_t i = begin; i < end; ++i) {
      ticker.tick();
      const auto target = load<int32_t>(targets_, i);
      if (target < 0 || target >= outputs_)
        fail(kName, cat("target ", target, " of ", outputs_, " outputs"));
      add(row * outputs_ + target, load<T>(weights_, i));
    }
  }

  void add(int64_t at, T weight) {
    if (aggregate_ == Aggregate::Sum) {
      y_[at] += weight;
      return;
    }
    uint8_t& has_weight = has_weight_[static_cast<size_t>(at)];
    const bool better = aggregate_ == Aggregate::Min ? weight < y_[at] : weight > y_[at];
    if (has_weight == 0 || better) y_[at] = weight;
    has_weight = 1;
  }

  const char *x_, *nodes_, *splits_, *roots_, *leaves_, *targets_, *weights_;
  T* y_;
  int64_t rows_, features_, node_count_, tree_count_, leaf_count_, weight_count_, outputs_;
  Aggregate aggregate_;
  Scratch<uint8_t> has_weight_;  // whether a weight was added to an element; not for sums
};

// T[rows, features] to T[rows, outputs] for T f32 or f64: per output, the sum, the least or the
// greatest of the weights that the trees' leaves add to it, 0 if there are none.
Tensor tree_ensemble(const Tensor& x, const Tensor& nodes, const Tensor& splits,
                     const Tensor& roots, const Tensor& leaves, const Tensor& targets,
                     const Tensor& weights, int64_t outputs, int64_t aggregate) {
  require_floats(kName, "x", x);
  require("x", x, x.dtype(), 2);
  require("nodes", nodes, i32, 2);
  require("splits", splits, x.dtype(), 1);
  require("roots", roots, i32, 1);
  require("leaves", leaves, i32, 1);
  require("targets", targets, i32, 1);
  require("weights", weights, x.dtype(), 1);
  if (nodes.dim(1) != 4) fail(kName, cat("'nodes' is ", to_text(nodes), ", expected [nodes, 4]"));
  if (splits.dim(0) != nodes.dim(0))
    fail(kName, cat(splits.dim(0), " splits of ", nodes.dim(0), " nodes"));
  if (targets.dim(0) != weights.dim(0))
    fail(kName, cat(targets.dim(0), " targets of ", weights.dim(0), " weights"));
  if (leaves.dim(0) < 1) fail(kName, "'leaves' is empty, expected where the first leaf begins");
  if (aggregate < 0 || aggregate >= static_cast<int64_t>(kAggregates.count))
    fail(kName, cat("'aggregate' is ", aggregate, ", expected 0 to ", kAggregates.count - 1));
  Tensor y = allocate_tensor(std::vector<int64_t>{x.dim(0), outputs}, x.dtype());
  if (y.count() == 0) return y;
  auto run = [&]<class T>(T) {
    Ensemble<T>(x, nodes, splits, roots, leaves, targets, weights, y,
                static_cast<Aggregate>(aggregate))
        .run();
  };
  if (x.dtype() == f32) {
    run(float{});
  } else {
    run(double{});
  }
  return y;
}

}  // namespace

void register_trees(Registration& functions) {
  library::add_typed(functions, library::signature(kName), tree_ensemble);
}

}  // namespace tenon::ml
