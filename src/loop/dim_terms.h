// The terms of a Dim's canonical form: a sorted sum without two terms of the same monomial. Private
// to the sources dim*.cc.
#pragma once

#include <numeric>

#include "loop/dim.h"

namespace tenon::dim_terms {

// Non-constant factors, sorted; borrowed from the Dims that they came from.
using Monomial = std::vector<const DimNode*>;

struct Term {
  int64_t coefficient = 0;
  Monomial atoms;
};
using Terms = std::vector<Term>;

// The limits of a node; exceeding them is a Usage error.
inline constexpr uint32_t kMaxDepth = 200;
inline constexpr size_t kMaxTerms = 4096;

// A node made of these parts unchanged; the caller must canonicalise.
Dim make_node(DimKind kind, const std::vector<Dim>& args, int64_t value = 0,
              std::string_view name = {});
// Completes a node that was read from outside and whose arguments are complete: computes its hash
// and depth. Throws a Usage error unless the node is as construction makes it.
void complete_node(DimNode* node);
// Throws a Usage error: a size overflows 64 bits in `what`.
[[noreturn]] void overflow(const char* what);
// The same: a size has that many terms.
[[noreturn]] void too_many_terms(size_t count);

// The greatest common divisor, which is positive unless both are 0; 2^62 instead of 2^63.
inline int64_t common_divisor(int64_t a, int64_t b) {
  auto magnitude = [](int64_t v) {
    return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  };
  const uint64_t g = std::gcd(magnitude(a), magnitude(b));
  return g > INT64_MAX ? int64_t{1} << 62 : static_cast<int64_t>(g);
}

// A total order by structure: symbols by name, then the other kinds.
int compare(const DimNode& a, const DimNode& b);
// By descending degree, then by atoms; so the constant term comes last.
int compare(const Monomial& a, const Monomial& b);

// The number of nodes of `d` as a tree, at most `limit`.
uint32_t node_count(const Dim& d, uint32_t limit);

Terms of(const Dim& d);
void append(const DimNode& n, int64_t scale, Terms* out);  // not normalised
void normalise(Terms* terms);
Dim build(const Term& t);
Dim build(const Terms& terms);
Terms multiply(const Terms& a, const Terms& b);
std::optional<Term> divide(const Term& a, const Term& b);  // nullopt if there is a remainder
std::optional<Terms> divide_exactly(Terms a, const Terms& b);

}  // namespace tenon::dim_terms
