// Sorting numbers, such as indices, by any order, with one copy of the sort's code for all of them.
#pragma once

#include <cstdint>
#include <span>

namespace tenon {

namespace detail {
using Less = bool (*)(const void* order, int64_t a, int64_t b);
void sort_numbers(std::span<int64_t> numbers, Less less, const void* order);
}  // namespace detail

// `less(a, b)` is a strict weak order that holds until this returns: it must not depend on memory
// that others may write to. Equal numbers may change places.
template <class Order>
void sort_numbers(std::span<int64_t> numbers, const Order& less) {
  detail::sort_numbers(
      numbers,
      [](const void* order, int64_t a, int64_t b) {
        return (*static_cast<const Order*>(order))(a, b);
      },
      &less);
}

}  // namespace tenon
