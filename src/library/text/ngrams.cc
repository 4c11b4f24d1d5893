// tenon.text.ngrams: counts n-grams, as ONNX's TfIdfVectorizer does: a tree of the pool's n-grams
// is walked from every item of a row.
#include <algorithm>
#include <cstring>
#include <map>

#include "device/device.h"
#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "support/poll.h"

namespace tenon::text {
namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.text.ngrams";

Scratch<int64_t> integers(std::string_view name, const Tensor& t, int32_t rank) {
  require_host(kName, name, t);
  if (t.dtype() != i64 || t.rank() != rank)
    fail(kName, cat("'", name, "' is ", to_text(t), ", expected i64 of rank ", rank));
  Scratch<int64_t> out(static_cast<size_t>(t.count()));
  if (!out.empty()) std::memcpy(out.data(), t.data(), out.size() * sizeof(int64_t));
  return out;
}

// The n-grams of the pool, as a tree: node 0 is the root, and the path to a node spells items.
class Tree {
 public:
  // Throws if an n-gram occurs twice, or the pool and the lists don't fit each other.
  Tree(const Scratch<int64_t>& pool, const Scratch<int64_t>& starts,
       const Scratch<int64_t>& columns) {
    nodes_.push_back({0, 0, -1});
    size_t number = 0;
    for (size_t k = 0; k < starts.size(); ++k) {
      const auto end = k + 1 < starts.size() ? starts[k + 1] : static_cast<int64_t>(pool.size());
      const auto items = static_cast<int64_t>(k) + 1;
      if (starts[k] < 0 || end < starts[k] || end > static_cast<int64_t>(pool.size()) ||
          (end - starts[k]) % items != 0) {
        fail(kName, cat("the ", items, "-grams of the pool from ", starts[k], " to ", end, " of ",
                        pool.size()));
      }
      for (int64_t at = starts[k]; at < end; at += items) {
        if (number == columns.size())
          fail(kName, cat("the pool has more n-grams than 'columns', ", columns.size()));
        add({pool.data() + at, static_cast<size_t>(items)}, columns[number++]);
      }
    }
    if (number != columns.size())
      fail(kName, cat("the pool has ", number, " n-grams, 'columns' ", columns.size()));
    sort();
  }

  // The child of a node, or 0.
  int64_t child(int64_t node, int64_t item) const {
    const auto [begin, end] = range(node);
    const auto at = std::lower_bound(begin, end, item, [&](int64_t edge, int64_t wanted) {
      return nodes_[static_cast<size_t>(edge)].item < wanted;
    });
    return at != end && nodes_[static_cast<size_t>(*at)].item == item ? *at : 0;
  }
  // The column of the n-gram that ends at the node, or -1.
  int64_t column(int64_t node) const { return nodes_[static_cast<size_t>(node)].column; }

 private:
  struct Node {
    int64_t parent, item, column;
  };

  // Nodes are appended as n-grams come, with a linear chain only where no node exists yet; `made_`
  // finds them by parent and item until they are sorted.
  void add(std::span<const int64_t> items, int64_t column) {
    int64_t node = 0;
    for (const int64_t item : items) {
      ticker_.tick();
      auto [at, fresh] = made_.try_emplace({node, item}, static_cast<int64_t>(nodes_.size()));
      if (fresh) nodes_.push_back({node, item, -1});
      node = at->second;
    }
    if (nodes_[static_cast<size_t>(node)].column >= 0) fail(kName, "the pool has an n-gram twice");
    nodes_[static_cast<size_t>(node)].column = column;
  }

  void sort() {
    made_.clear();
    edges_.resize(nodes_.size() - 1);
    for (size_t i = 0; i < edges_.size(); ++i) edges_[i] = static_cast<int64_t>(i) + 1;
    std::sort(edges_.begin(), edges_.end(), [&](int64_t a, int64_t b) {
      ticker_.tick();
      const Node &x = nodes_[static_cast<size_t>(a)], &y = nodes_[static_cast<size_t>(b)];
      return x.parent != y.parent ? x.parent < y.parent : x.item < y.item;
    });
    first_.assign(nodes_.size() + 1, static_cast<int64_t>(edges_.size()));
    for (size_t i = edges_.size(); i-- > 0;)
      first_[static_cast<size_t>(nodes_[static_cast<size_t>(edges_[i])].parent)] =
          static_cast<int64_t>(i);
    for (size_t i = nodes_.size(); i-- > 0;) first_[i] = std::min(first_[i], first_[i + 1]);
  }

  std::pair<const int64_t*, const int64_t*> range(int64_t node) const {
    const auto at = static_cast<size_t>(node);
    return {edges_.data() + first_[at], edges_.data() + first_[at + 1]};
  }

  using Key = std::pair<int64_t, int64_t>;
  std::map<Key, int64_t, std::less<>, ScratchAllocator<std::pair<const Key, int64_t>>> made_;
  Scratch<Node> nodes_;
  Scratch<int64_t> edges_;  // nodes but the root, by parent and item
  Scratch<int64_t> first_;  // of each node's edges
  Ticker ticker_;
};

// Calls `found` with the column of each occurrence in a row.
template <class Found>
void count_row(const Tree& tree, std::span<const int64_t> row, int64_t least, int64_t most,
               int64_t skips, const Found& found) {
  Ticker ticker;
  const auto size = static_cast<int64_t>(row.size());
  // A distance beyond the row reaches no second item.
  const int64_t farthest = std::min(skips, size) + 1;
  for (int64_t distance = 1; distance <= farthest && least <= most; ++distance) {
    for (int64_t start = 0; start < size; ++start) {
      int64_t node = 0;
      for (int64_t items = 1, at = start; items <= most && at < size; ++items, at += distance) {
        ticker.tick();
        node = tree.child(node, row[static_cast<size_t>(at)]);
        if (node == 0) break;
        if (items >= least && tree.column(node) >= 0) found(tree.column(node));
      }
    }
    if (least == 1) least = 2;  // no distance matters to single items
  }
}

Tensor ngrams(const Tensor& x, const Tensor& pool, const Tensor& starts, const Tensor& columns,
              int64_t least, int64_t most, int64_t skips, int64_t outputs) {
  if (least < 1 || most < 1 || skips < 0 || outputs < 0) {
    fail(kName, cat("'least' ", least, ", 'most' ", most, ", 'skips' ", skips, " and 'outputs' ",
                    outputs, ", expected lengths from 1 and numbers from 0"));
  }
  const Scratch<int64_t> items = integers("x", x, 2);
  const Scratch<int64_t> places = integers("columns", columns, 1);
  for (const int64_t column : places) {
    if (column < 0 || column >= outputs) fail(kName, cat("the column ", column, " of ", outputs));
  }
  const Tree tree(integers("pool", pool, 1), integers("starts", starts, 1), places);
  Tensor counts = allocate_tensor(std::vector<int64_t>{x.dim(0), outputs}, f32);
  const auto width = static_cast<size_t>(x.dim(1));
  Scratch<float> row_counts(static_cast<size_t>(outputs));
  for (int64_t row = 0; counts.count() > 0 && row < x.dim(0); ++row) {
    poll();
    std::fill(row_counts.begin(), row_counts.end(), 0.0f);
    count_row(tree, {items.data() + static_cast<size_t>(row) * width, width}, least, most, skips,
              [&](int64_t column) { ++row_counts[static_cast<size_t>(column)]; });
    std::memcpy(counts.data_as<float>() + row * outputs, row_counts.data(),
                row_counts.size() * sizeof(float));
  }
  return counts;
}

}  // namespace

void register_ngrams(Registration& functions) {
  library::add_typed(functions, library::signature(kName), ngrams);
}

}  // namespace tenon::text
