#include "graph/pass/permutation.h"

#include <algorithm>

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

bool is_identity(const std::vector<int64_t>& perm) {
  return std::is_sorted(perm.begin(), perm.end());
}

std::optional<Transposed> as_transposed(const Builder& b, const Operand& operand) {
  if (!operand) return std::nullopt;
  const ExprRef definition = b.definition_of(operand);
  const Call* call = definition ? as_op(definition, op::transpose) : nullptr;
  if (!call) return std::nullopt;
  return Transposed{call->args[0], permutation_of(*call)};
}

}  // namespace tenon::graph
