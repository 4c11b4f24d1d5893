// Permutations of axes, as the attribute `perm` of a transpose has them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir/builder.h"

namespace tenon::graph {

// The perm such that transpose(transpose(x, first), second) = transpose(x, perm).
std::vector<int64_t> compose_permutations(const std::vector<int64_t>& first,
                                          const std::vector<int64_t>& second);
std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& perm);
std::vector<int64_t> identity_permutation(size_t rank);
bool is_identity(const std::vector<int64_t>& perm);

// The source and permutation of a transpose, if `operand` is bound to one whose operand has a known
// rank.
struct Transposed {
  Operand source;
  std::vector<int64_t> perm;
};
std::optional<Transposed> as_transposed(const Builder& b, const Operand& operand);

}  // namespace tenon::graph
