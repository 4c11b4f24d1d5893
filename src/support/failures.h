// Failures at run time that several parts meet, each with its one wording: the machine and compiled
// code, kernels, and the evaluators, which stand in layers that don't see each other.
#pragma once

#include "support/error.h"
#include "support/text.h"

namespace tenon {

// A literal, since the table of kernels' errors (vm/executable/kernel_errors.def) joins it.
#define TENON_DIVISION_BY_ZERO "integer division by zero"

[[gnu::cold]] inline Error division_by_zero() {
  return Error(ErrorKind::Runtime, TENON_DIVISION_BY_ZERO);
}

[[gnu::cold]] inline Error size_overflow(int64_t a, int64_t b) {
  return Error(ErrorKind::Runtime, "a size computation overflows 64 bits")
      .found(cat("operands ", a, " and ", b))
      .help("the inputs' sizes are too large");
}

[[gnu::cold]] inline Error broadcast_failure(int64_t a, int64_t b) {
  return Error(ErrorKind::Runtime, "two sizes can't be broadcast together")
      .found(cat(a, " and ", b))
      .expected("equal sizes, or one of them 1");
}

// `type`: the tensor's, as text.
[[gnu::cold]] inline Error impossible_tensor(std::string_view type) {
  return Error(ErrorKind::Runtime, "a tensor's size is negative or overflows").found(type);
}

// `found`: the tensor.
[[gnu::cold]] inline Error wrong_element_count(size_t wanted, std::string_view found) {
  return Error(ErrorKind::Runtime,
               cat("a tensor with ", counted(wanted, "element"), " is required"))
      .found(found)
      .expected("a compact tensor on the CPU of rank 0 or 1");
}

}  // namespace tenon
