// Searching and sorting: the functions behind nonzero, topk, compress and unique.
#include "library/algorithms/functions.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstring>

#include "device/scratch.h"
#include "library/argument/argument.h"
#include "object/array.h"
#include "support/bulk.h"
#include "support/sort_numbers.h"

namespace tenon::algorithms {

namespace {

using namespace argument;

std::vector<int64_t> dims_of(const Tensor& x) {
  return std::vector<int64_t>(x.shape().begin(), x.shape().end());
}

// The flat tensor, or x itself.
Tensor flattened(const Tensor& x, bool flatten) {
  return flatten ? x.reshaped(std::vector<int64_t>{x.count()}) : x;
}

// The slices of x along `axis` at these indices, in that order.
Tensor take(const Tensor& x, int64_t axis, std::span<const int64_t> indices) {
  std::vector<int64_t> dims = dims_of(x);
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(indices.size());
  Tensor y = allocate_tensor(dims, x.dtype());
  if (y.count() == 0) return y;
  Slices s(x, axis);
  auto bytes = static_cast<size_t>(s.inner * x.dtype().bytes());
  const char* from = static_cast<const char*>(x.data());
  char* to = static_cast<char*>(y.data());
  Ticker ticker;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i : indices) {
      ticker.tick(std::min(bytes, kPollBytes));
      copy_memory(to, from + static_cast<size_t>(o * s.n + i) * bytes, bytes);
      to += bytes;
    }
  }
  return y;
}

// Calls part(first, count) for parts of [0, n) of up to kPart, with a poll between them.
constexpr int64_t kPart = 1024;
void for_parts(int64_t n, Ticker& ticker, const auto& part) {
  for (int64_t first = 0; first < n; first += kPart) {
    const int64_t count = std::min(kPart, n - first);
    ticker.tick(static_cast<size_t>(count) * sizeof(uint64_t));
    part(first, count);
  }
}

// i64[rank, count] (rank 1 for a scalar): the indices of nonzero elements in row-major order, one
// column per element.
Tensor nonzero(const Tensor& x) {
  require_elements("tenon.nonzero", "x", x);
  const char* data = static_cast<const char*>(x.data());
  const int64_t bytes = x.dtype().bytes();
  Scratch<int64_t> found;
  Ticker ticker;
  for_parts(x.count(), ticker, [&](int64_t first, int64_t count) {
    std::array<uint8_t, kPart> flags;
    const std::span part(flags.data(), static_cast<size_t>(count));
    are_nonzero(x.dtype(), data + first * bytes, part);
    for (int64_t i = 0; i < count; ++i) {
      if (part[static_cast<size_t>(i)] != 0) found.push_back(first + i);
    }
  });
  const auto n = static_cast<int64_t>(found.size()), rank = std::max<int64_t>(x.rank(), 1);
  Tensor y = allocate_tensor(std::vector<int64_t>{rank, n}, i64);
  int64_t* out = y.data_as<int64_t>();
  for (int64_t axis = rank; axis-- > 0;) {
    const int64_t size = x.rank() == 0 ? 1 : x.dim(static_cast<int32_t>(axis));
    int64_t row = 0;  // of the last element; those in the same row need no division
    for (int64_t i = 0; i < n; ++i) {
      ticker.tick();
      int64_t& place = found[static_cast<size_t>(i)];
      if (place - row * size >= size) row = place / size;
      out[axis * n + i] = place - row * size;
      place = row;
    }
  }
  return y;
}

// An element's key and its place, in the order of both: of few bits as one number.
class Entry {
 public:
  Entry() = default;
  Entry(uint64_t key, int64_t place) : key_(key), place_(place) {}
  int64_t place() const { return place_; }
  auto operator<=>(const Entry&) const = default;

 private:
  uint64_t key_;
  int64_t place_;
};
class ShortEntry {
 public:
  ShortEntry() = default;
  ShortEntry(uint64_t key, int64_t place) : both_(key << 32 | static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(both_ & kMostPlaces); }
  auto operator<=>(const ShortEntry&) const = default;
  static constexpr int64_t kMostPlaces = 0xffffffff;

 private:
  uint64_t both_;
};

// Writes the places of the k least keys, in order.
template <class AnyEntry>
void places_of_least(std::span<const uint64_t> keys, size_t k, Ticker& ticker,
                     Scratch<int64_t>& places) {
  constexpr size_t kFew = 16;
  const auto entry = [&](size_t i) { return AnyEntry(keys[i], static_cast<int64_t>(i)); };
  const auto less = [&](const AnyEntry& a, const AnyEntry& b) {
    ticker.tick();
    return a < b;
  };
  const bool are_few = k <= keys.size() / kFew;
  Scratch<AnyEntry> best(are_few ? k : keys.size());
  for (size_t i = 0; i < best.size(); ++i) {
    ticker.tick();
    best[i] = entry(i);
  }
  if (are_few) {  // a heap of the least so far, the greatest of them first
    std::make_heap(best.begin(), best.end(), less);
    for_parts(static_cast<int64_t>(keys.size() - k), ticker, [&](int64_t first, int64_t count) {
      const size_t begin = k + static_cast<size_t>(first), end = begin + static_cast<size_t>(count);
      for (size_t i = begin; i < end; ++i) {
        if (const AnyEntry e = entry(i); e < best.front()) [[unlikely]] {
          std::pop_heap(best.begin(), best.end(), less);
          best.back() = e;
          std::push_heap(best.begin(), best.end(), less);
        }
      }
    });
    std::sort_heap(best.begin(), best.end(), less);
  } else {
    const auto end = best.begin() + static_cast<std::ptrdiff_t>(k);
    if (end != best.end()) std::nth_element(best.begin(), end, best.end(), less);
    std::sort(best.begin(), end, less);
  }
  for (size_t i = 0; i < k; ++i) places[i] = best[i].place();
}

// [values, indices (i64)] of the k greatest or least elements along an axis, in order; the first of
// equal ones. NaN is the greatest. `sorted` has no effect: the results are always sorted.
Array<Any> topk(const Tensor& x, int64_t k, int64_t axis, int64_t largest, int64_t /*sorted*/) {
  require_host("tenon.topk", "x", x);
  axis = axis_of("tenon.topk", axis, x);
  int64_t size = x.dim(static_cast<int32_t>(axis));
  if (k < 0 || k > size) fail("tenon.topk", cat("k is ", k, " of ", size, " elements"));
  std::vector<int64_t> dims = dims_of(x);
  dims[static_cast<size_t>(axis)] = k;
  Tensor values = allocate_tensor(dims, x.dtype()), indices = allocate_tensor(dims, i64);
  if (values.count() == 0) return {values, indices};

  Slices s(x, axis);
  const int64_t bytes = x.dtype().bytes();
  const char* from = static_cast<const char*>(x.data());
  char* to = static_cast<char*>(values.data());
  int64_t* places = indices.data_as<int64_t>();
  Scratch<uint64_t> keys(static_cast<size_t>(s.n));
  Scratch<int64_t> found(static_cast<size_t>(k));
  Ticker ticker;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) {
      for_parts(s.n, ticker, [&](int64_t first, int64_t count) {
        const char* begin = from + ((o * s.n + first) * s.inner + i) * bytes;
        const std::span part(keys.data() + first, static_cast<size_t>(count));
        element_keys(x.dtype(), begin, s.inner * bytes, part);
        if (largest == 0) return;
        for (uint64_t& key : part) key = ~key;
      });
      const bool are_short = bytes <= 4 && s.n <= ShortEntry::kMostPlaces;
      (are_short ? places_of_least<ShortEntry>
                 : places_of_least<Entry>)(keys, static_cast<size_t>(k), ticker, found);
      for (int64_t j = 0; j < k; ++j) {
        ticker.tick();
        int64_t place = found[static_cast<size_t>(j)], at = (o * k + j) * s.inner + i;
        places[at] = place;
        std::memcpy(to + at * bytes, from + ((o * s.n + place) * s.inner + i) * bytes,
                    static_cast<size_t>(bytes));
      }
    }
  }
  return {values, indices};
}

// The slices along `axis` (elements of the flattened tensor if `flatten`) whose entry in
// `condition` is true. `condition` is a list of booleans, which may be shorter than the axis.
Tensor compress(const Tensor& given, const Tensor& condition, int64_t axis, int64_t flatten) {
  require_elements("tenon.compress", "x", given);
  require_host("tenon.compress", "condition", condition);
  if (!condition.dtype().is_bool() || condition.rank() != 1) {
    fail("tenon.compress", cat("'condition' is ", to_text(condition), ", expected bool of rank 1"));
  }
  Tensor x = flattened(given, flatten != 0);
  axis = flatten ? 0 : axis_of("tenon.compress", axis, x);
  int64_t n = x.dim(static_cast<int32_t>(axis));
  if (condition.count() > n) {
    fail("tenon.compress",
         cat("'condition' has ", condition.count(), " entries for ", n, " slices"));
  }
  Scratch<int64_t> kept;
  Ticker ticker;
  for (int64_t i = 0, count = condition.count(); i < count; ++i) {
    ticker.tick();
    if (condition.data_as<uint8_t>()[i]) kept.push_back(i);
  }
  return take(x, axis, kept);
}

// [values, first, inverse, counts] for x without elements: all slices, if any, are equal.
Array<Any> unique_of_empty(const Tensor& x, int64_t axis) {
  int64_t n = x.dim(static_cast<int32_t>(axis));
  Tensor inverse = allocate_tensor(std::vector<int64_t>{n}, i64);
  fill_memory(inverse.data(), 0, static_cast<size_t>(inverse.bytes()));
  Scratch<int64_t> first, counts;
  if (n > 0) {
    first.push_back(0);
    counts.push_back(n);
  }
  return {take(x, axis, first), list_of(first), inverse, list_of(counts)};
}

// [values, first, inverse, counts] of the distinct slices along `axis` (elements if `flatten`), in
// increasing order or, without `sorted`, in order of appearance. NaNs are equal to each other.
// Complex numbers are ordered by their real parts, then by their imaginary parts.
Array<Any> unique(const Tensor& given, int64_t axis, int64_t flatten, int64_t sorted) {
  require_elements("tenon.unique", "x", given);
  Tensor x = flattened(given, flatten != 0);
  axis = flatten ? 0 : axis_of("tenon.unique", axis, x);
  if (x.count() == 0) return unique_of_empty(x, axis);
  Slices s(x, axis);
  // A complex number is two floats of its slice.
  const DataType part = part_of(x.dtype());
  s.inner *= x.dtype().bytes() / part.bytes();
  // keys[j]: the keys of slice j, in row-major order.
  size_t n = static_cast<size_t>(s.n), width = static_cast<size_t>(s.outer * s.inner);
  Scratch<uint64_t> keys(n * width);
  const char* data = static_cast<const char*>(x.data());
  int64_t bytes = part.bytes();
  Ticker ticker;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t i = 0; i < s.inner; ++i) {
        ticker.tick();
        keys[static_cast<size_t>(j) * width + static_cast<size_t>(o * s.inner + i)] =
            element_key(part, data + ((o * s.n + j) * s.inner + i) * bytes);
      }
    }
  }
  // Negative, zero or positive if slice a is less than, equal to or greater than slice b.
  auto compared = [&](int64_t a, int64_t b) {
    const uint64_t *p = keys.data() + static_cast<size_t>(a) * width,
                   *q = keys.data() + static_cast<size_t>(b) * width;
    for (size_t i = 0; i < width; ++i) {
      ticker.tick();
      if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    }
    return 0;
  };
  // 0, 1, ..., count - 1.
  auto numbers = [&](size_t count) {
    Scratch<int64_t> all(count);
    for (size_t i = 0; i < count; ++i) {
      ticker.tick();
      all[i] = static_cast<int64_t>(i);
    }
    return all;
  };
  Scratch<int64_t> order = numbers(n);
  sort_numbers(order, [&](int64_t a, int64_t b) {
    int found = compared(a, b);
    return found != 0 ? found < 0 : a < b;
  });

  Scratch<int64_t> first, counts, inverse(n);
  for (size_t i = 0; i < n; ++i) {
    ticker.tick();
    if (i == 0 || compared(order[i], order[i - 1]) != 0) {
      first.push_back(
          order[i]);  // ties are broken by position, so this is the first of equal slices
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
  }
  if (!sorted) {
    Scratch<int64_t> rank = numbers(first.size()), place(first.size());
    sort_numbers(rank, [&](int64_t a, int64_t b) {
      ticker.tick();
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    Scratch<int64_t> first_seen, counts_seen;
    for (size_t i = 0; i < rank.size(); ++i) {
      ticker.tick();
      place[static_cast<size_t>(rank[i])] = static_cast<int64_t>(i);
      first_seen.push_back(first[static_cast<size_t>(rank[i])]);
      counts_seen.push_back(counts[static_cast<size_t>(rank[i])]);
    }
    for (int64_t& i : inverse) {
      ticker.tick();
      i = place[static_cast<size_t>(i)];
    }
    first = std::move(first_seen), counts = std::move(counts_seen);
  }
  return {take(x, axis, first), list_of(first), list_of(inverse), list_of(counts)};
}

}  // namespace

void register_search(Registration& functions) {
  library::add_typed(functions, library::signature("tenon.nonzero"), nonzero);
  library::add_typed(functions, library::signature("tenon.topk"), topk);
  library::add_typed(functions, library::signature("tenon.compress"), compress);
  library::add_typed(functions, library::signature("tenon.unique"), unique);
}

}  // namespace tenon::algorithms
