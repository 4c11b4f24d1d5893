// Pointwise operators: those whose entry has `element`. Their type rule, lowering and sample follow
// from it; so do, elsewhere, their meaning on scalars and their cost.
#pragma once

#include "graph/op/rule.h"
#include "graph/op/scalar.h"

namespace tenon::graph {

using Elements = std::vector<Scalar>;  // one per operand, null where it is absent

// Fills in what a pointwise entry leaves out of `infer`, `lower` and `sample`: the operands have
// one dtype and are broadcast to each other; the result has the dtype of `element`.
Operator pointwise(Operator op);

// Whether operands of the set can be integers or truths in registers: the scalars that the machine
// computes with.
inline bool has_integers(DtypeSet dtypes) {
  return contains(dtypes, i64) || contains(dtypes, boolean);
}

// The shape that all present operands are broadcast to.
std::vector<Dim> broadcast_operands(InferContext& cx);

// One or two operands of one dtype that broadcast to each other, as many as `op` has.
Sample sample_pointwise(const Operator& op, uint64_t seed);

// Whether an element of the call's result costs more to compute again than to read back: it takes a
// division, a root or more. `op`, the call's, is elementwise or broadcast.
bool is_costly(const Operator& op, const Call& call);

}  // namespace tenon::graph
