// tenon.text.ngrams: counts n-grams, as ONNX's TfIdfVectorizer does: a tree of the pool's n-grams
// is walked from every item of a row.
#include <algorithm>
#include <map>

#include "device/device.h"
#include "library/argument/argument.h"
#include "library/signatures/ngrams.h"
#include "library/text/functions.h"
#include "support/bulk.h"
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
  copy_memory(out.data(), t.data(), out.size() * sizeof(int64_t));
  return out;
}

// The n-grams of the pool, as a tree: node 0 is the root, and the path to a node spells items.
class Tree {
 public:
  // Throws if an n-gram occurs twice, or the pool and the lists don't fit each other.
  Tree(const Scratch<int64_t>& pool, const Scratch<int64_t>& starts,
       const Scratch<int64_t>& columns) {
    nodes_.reserve(pool.size() + 1);  // so that nothing is copied
    nodes_.push_back({0, 0, -1});
    size_t number = 0;
    for (size_t k = 0; k < starts.size(); ++k) {
      ticker_.tick();
      const auto items = static_cast<int64_t>(pool.size());
      const library::NgramRange range = library::ngram_range(starts, k, items);
      if (!range.fits(items)) {
        fail(kName, cat("the ", range.length, "-grams of the pool from ", range.begin, " to ",
                        range.end, " of ", items));
      }
      for (int64_t at = range.begin; at < range.end; at += range.length) {
        if (number == columns.size())
          fail(kName, cat("the pool has more n-grams than 'columns', ", columns.size()));
        add({pool.data() + at, static_cast<size_t>(range.length)}, columns[number++]);
      }
    }
    if (number != columns.size())
      fail(kName, cat("the pool has ", number, " n-grams, 'columns' ", columns.size()));
    list_children();
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

  // Nodes are created in input order; shared prefixes share nodes.
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

  // The keys of `made_` are in the order of parents, and of items among the children of one.
  void list_children() {
    edges_.reserve(made_.size());
    first_.reserve(nodes_.size() + 1);
    for (auto at = made_.begin(); at != made_.end(); at = made_.erase(at)) {
      ticker_.tick();
      begin_children(at->first.first);
      edges_.push_back(at->second);
    }
    begin_children(static_cast<int64_t>(nodes_.size()));
  }

  // Of this node and of those before it, which have no more.
  void begin_children(int64_t node) {
    for (; first_.size() <= static_cast<size_t>(node); ticker_.tick())
      first_.push_back(static_cast<int64_t>(edges_.size()));
  }

  std::pair<const int64_t*, const int64_t*> range(int64_t node) const {
    const auto at = static_cast<size_t>(node);
    return {edges_.data() + first_[at], edges_.data() + first_[at + 1]};
  }

  using Key = std::pair<int64_t, int64_t>;
  // The node of a parent and an item, until the children are listed.
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
  Ticker ticker;
  for (const int64_t column : places) {
    ticker.tick();
    if (column < 0 || column >= outputs) fail(kName, cat("the column ", column, " of ", outputs));
  }
  const Tree tree(integers("pool", pool, 1), integers("starts", starts, 1), places);
  Tensor counts = allocate_tensor(std::vector<int64_t>{x.dim(0), outputs}, f32);
  fill_memory(counts.data(), 0, static_cast<size_t>(counts.bytes()));
  const auto width = static_cast<size_t>(x.dim(1));
  for (int64_t row = 0; counts.count() > 0 && row < x.dim(0); ++row) {
    ticker.tick();
    float* row_counts = counts.data_as<float>() + row * outputs;
    count_row(tree, {items.data() + static_cast<size_t>(row) * width, width}, least, most, skips,
              [&](int64_t column) { ++row_counts[column]; });
  }
  return counts;
}

}  // namespace

void register_ngrams(Registration& functions) {
  library::add_typed(functions, library::signature(kName), ngrams);
}

}  // namespace tenon::text
