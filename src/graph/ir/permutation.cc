#include "graph/ir/permutation.h"

#include <algorithm>
#include <numeric>

#include "graph/ir/rewrite.h"

namespace tenon::graph {

std::vector<int64_t> compose_permutations(const std::vector<int64_t>& first,
                                          const std::vector<int64_t>& second) {
  std::vector<int64_t> perm(first.size());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = first[second[i]];
  return perm;
}

std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return inverse;
}

std::vector<int64_t> identity_permutation(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  return perm;
}

bool is_identity(const std::vector<int64_t>& perm) {
  return std::is_sorted(perm.begin(), perm.end());
}

std::optional<Transposed> as_transposed(const Builder& b, const Operand& operand) {
  const Call* call = call_of(b, operand, op::transpose);
  if (!call) return std::nullopt;
  return Transposed{call->args[0], permutation_of(*call)};
}

}  // namespace tenon::graph
