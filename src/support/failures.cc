#include "support/failures.h"

#include "support/text.h"

namespace tenon {

Error failure(ErrorKind kind, std::string_view what, std::string_view found,
              std::string_view expected) {
  Error error(kind, what);
  error.found(found);
  if (!expected.empty()) error.expected(expected);
  return error;
}

Error failure(std::string_view what, std::string_view found, std::string_view expected) {
  return failure(ErrorKind::Runtime, what, found, expected);
}

Error misuse(std::string_view what, std::string_view found, std::string_view expected) {
  return failure(ErrorKind::Usage, what, found, expected);
}

Error division_by_zero() {
  return Error(ErrorKind::Runtime, TENON_DIVISION_BY_ZERO);
}

void throw_failure(ErrorKind kind, std::string_view what, std::string_view found,
                   std::string_view expected) {
  throw failure(kind, what, found, expected);
}

void throw_failure(std::string_view what, std::string_view found, std::string_view expected) {
  throw failure(what, found, expected);
}

void throw_misuse(std::string_view what, std::string_view found, std::string_view expected) {
  throw misuse(what, found, expected);
}

Error size_overflow(int64_t a, int64_t b) {
  return Error(ErrorKind::Runtime, "a size computation overflows 64 bits")
      .found(cat("operands ", a, " and ", b))
      .help("the inputs' sizes are too large");
}

Error broadcast_failure(int64_t a, int64_t b) {
  return failure("two sizes can't be broadcast together", cat(a, " and ", b),
                 "equal sizes, or one of them 1");
}

Error index_out_of_range(int64_t index, size_t size) {
  return failure("an index is out of range", cat(index),
                 cat("an index into ", counted(size, "element")));
}

Error impossible_tensor(std::string_view type) {
  return failure("a tensor's size is negative or overflows", type);
}

Error wrong_element_count(size_t wanted, std::string_view found) {
  return failure(cat("a tensor with ", counted(wanted, "element"), " is required"), found,
                 "a compact tensor on the CPU of rank 0 or 1");
}

}  // namespace tenon
