#include "support/sort_numbers.h"

#include <algorithm>

namespace tenon {

void detail::sort_numbers(std::span<int64_t> numbers, Less less, const void* order) {
  std::sort(numbers.begin(), numbers.end(),
            [=](int64_t a, int64_t b) { return less(order, a, b); });
}

}  // namespace tenon
