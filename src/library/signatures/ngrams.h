// The layout of the pool of tenon.text.ngrams: the items of its n-grams of one item, then those of
// two items, and so on; `starts` lists where each length begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::library {

// Where the n-grams of one length lie in the pool.
struct NgramRange {
  int64_t length;      // items of an n-gram
  int64_t begin, end;  // items of the pool

  // Whether they are whole n-grams in a pool of so many items.
  bool fits(int64_t items) const {
    return begin >= 0 && end >= begin && end <= items && (end - begin) % length == 0;
  }
  int64_t count() const { return (end - begin) / length; }
};

// The range of length k + 1 in a pool of so many items.
inline NgramRange ngram_range(std::span<const int64_t> starts, size_t k, int64_t items) {
  return {static_cast<int64_t>(k) + 1, starts[k], k + 1 < starts.size() ? starts[k + 1] : items};
}

}  // namespace tenon::library
