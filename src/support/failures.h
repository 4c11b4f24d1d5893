// Errors of the usual form, and failures at run time that several parts meet, each with its one
// wording: the machine and compiled code, kernels, and the evaluators, which stand in layers that
// don't see each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "support/error.h"

namespace tenon {

// What failed, what was found and, unless it is plain, what was expected. Smaller than the same as
// calls of an Error's functions, at each place.
[[gnu::cold]] Error failure(ErrorKind kind, std::string_view what, std::string_view found,
                            std::string_view expected = {});
// The same for an error at run time.
[[gnu::cold]] Error failure(std::string_view what, std::string_view found,
                            std::string_view expected = {});
// The same for what the host did wrong.
[[gnu::cold]] Error misuse(std::string_view what, std::string_view found,
                           std::string_view expected = {});

// The same, thrown: a smaller call than `throw failure(...)`.
[[noreturn, gnu::cold]] void throw_failure(ErrorKind kind, std::string_view what,
                                           std::string_view found, std::string_view expected = {});
[[noreturn, gnu::cold]] void throw_failure(std::string_view what, std::string_view found,
                                           std::string_view expected = {});
[[noreturn, gnu::cold]] void throw_misuse(std::string_view what, std::string_view found,
                                          std::string_view expected = {});

// A literal, since the table of kernels' errors (vm/executable/kernel_errors.def) joins it.
#define TENON_DIVISION_BY_ZERO "integer division by zero"

[[gnu::cold]] Error division_by_zero();

[[gnu::cold]] Error size_overflow(int64_t a, int64_t b);

[[gnu::cold]] Error broadcast_failure(int64_t a, int64_t b);

[[gnu::cold]] Error index_out_of_range(int64_t index, size_t size);

// `type`: the tensor's, as text.
[[gnu::cold]] Error impossible_tensor(std::string_view type);

// `found`: the tensor.
[[gnu::cold]] Error wrong_element_count(size_t wanted, std::string_view found);

}  // namespace tenon
