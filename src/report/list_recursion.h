// Recursion over a list, whose depth the list's length bounds.
#pragma once

#include <cstddef>
#include <optional>

#include "vm/isa/unit.h"

namespace tenon::report::memory {

struct ListRecursion {
  size_t param;  // the list
  // One activation calls the function at most once more: there are as many calls as the recursion
  // is deep.
  bool is_linear;
};

// Of a function that calls itself: a parameter of which each such call gets a tail that is shorter,
// by code that takes fields of cells only. At most as many calls as the list has elements are then
// on the stack, and one for the empty list. The code must be verified.
std::optional<ListRecursion> list_recursion(const vm::Unit& unit, size_t function);

}  // namespace tenon::report::memory
