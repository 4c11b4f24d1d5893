// Places of values with constant sizes in one block of memory, such that values which are alive
// together don't overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tenon::graph {

// A value's use of memory: from the binding `first` to the binding `last`, both included.
struct Lifetime {
  int64_t first = 0, last = 0;
};

class Arena {
 public:
  // For lifetimes within the bindings 0 to `bindings - 1`.
  explicit Arena(int64_t bindings);

  // The lowest offset where `bytes` are free during `life`. If very many values are alive then, the
  // offset above all of them: looking for gaps takes time in proportion to their number.
  int64_t find(Lifetime life, int64_t bytes) const;
  // Takes the memory from `offset` on during `life`.
  void take(Lifetime life, int64_t offset, int64_t bytes);

  int64_t bytes() const { return bytes_; }

 private:
  struct Place {
    int64_t offset, end;
  };
  // Of a segment tree over bindings: a place is in the fewest nodes that cover its lifetime.
  struct Node {
    std::vector<Place> places;
    int64_t top = 0;      // the highest end of `places`
    int64_t top_all = 0;  // also of those in the nodes below
  };
  // The places alive at some binding of `life`; false if there are more than kMaxSearched.
  bool collect(Lifetime life, std::vector<Place>* places) const;
  int64_t top(Lifetime life) const;

  static constexpr size_t kMaxSearched = 512;

  int64_t leaves_ = 1;                      // a power of two
  std::vector<Node> nodes_;                 // the root is 1, the children of i are 2i and 2i + 1
  std::multimap<int64_t, Place> by_first_;  // by the first binding of the lifetime
  int64_t bytes_ = 0;
};

}  // namespace tenon::graph
