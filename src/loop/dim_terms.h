// The canonical form of a Dim taken apart: a sum of terms, sorted, without two of one monomial.
// Private to the sources dim*.cc.
#pragma once

#include "loop/dim.h"

namespace tenon::dim_terms {

// Factors that are no constants, sorted; borrowed from the Dims that they came from.
using Monomial = std::vector<const DimNode*>;

struct Term {
  int64_t coefficient = 0;
  Monomial atoms;
};
using Terms = std::vector<Term>;

// A node beyond these is refused: Error (Usage).
inline constexpr uint32_t kMaxDepth = 200;
inline constexpr size_t kMaxTerms = 4096;

// A node of these parts as they are; whoever calls it canonicalises.
Dim make_node(DimKind kind, const std::vector<Dim>& args, int64_t value = 0,
              std::string_view name = {});
// Throws Error (Usage): a size overflows 64 bits in `what`.
[[noreturn]] void overflow(const char* what);

// a / b rounded towards minus infinity; b is not 0, and the quotient fits.
inline int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// What that division leaves; it has the divisor's sign. b is not 0, and not -1 for INT64_MIN.
inline int64_t floor_remainder(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

// A total order by structure: symbols by name, then the other kinds.
int compare(const DimNode& a, const DimNode& b);
// By falling degree, then by atoms; so the constant term comes last.
int compare(const Monomial& a, const Monomial& b);

// Nodes of `d` as a tree, or `limit` where there are more.
uint32_t node_count(const Dim& d, uint32_t limit);

Terms of(const Dim& d);
void append(const DimNode& n, int64_t scale, Terms* out);  // not normalised
void normalise(Terms* terms);
Dim build(const Term& t);
Dim build(const Terms& terms);
Terms multiply(const Terms& a, const Terms& b);
std::optional<Term> divide(const Term& a, const Term& b);  // where it leaves no remainder
std::optional<Terms> divide_exactly(Terms a, const Terms& b);

}  // namespace tenon::dim_terms
