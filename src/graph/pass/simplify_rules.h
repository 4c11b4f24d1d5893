// The rewrite rules of simplify, as a table from an operator's name to functions that try to
// replace one call of it. A rule never assumes that a value is not NaN, infinite or -0.
#pragma once

#include "graph/ir/builder.h"

namespace tenon::graph {

// The replacement of `call`, whose result has `type`, by the first rule that applies, or null.
Operand apply_simplify_rules(Builder& b, const Call& call, const TypeRef& type);

// A constant integer tensor with the dtype and the constant dimensions of `type`.
Operand constant_integers(const TensorType& type, const std::vector<int64_t>& elements);

// The perm such that transpose(transpose(x, first), second) = transpose(x, perm).
std::vector<int64_t> compose_permutations(const std::vector<int64_t>& first,
                                          const std::vector<int64_t>& second);
std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& perm);
bool is_identity(const std::vector<int64_t>& perm);

// The source and permutation of a transpose, if `operand` is bound to one whose operand has a known
// rank.
struct Transposed {
  Operand source;
  std::vector<int64_t> perm;
};
std::optional<Transposed> as_transposed(const Builder& b, const Operand& operand);

}  // namespace tenon::graph
