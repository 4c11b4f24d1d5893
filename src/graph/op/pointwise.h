// Pointwise operators: those whose entry has `element`. Their type rule, lowering, sample, cost and
// meaning on scalars are derived from it.
#pragma once

#include "graph/op/rule.h"
#include "graph/op/scalar.h"

namespace tenon::graph {

using Elements = std::vector<Scalar>;  // one per operand, null if absent

// Fills in `infer`, `lower` and `sample` of a pointwise entry unless they are set: the operands
// have one dtype and are broadcast to each other; the result has the dtype of `element`.
Operator pointwise(Operator op);

// The shape that all present operands are broadcast to.
std::vector<Dim> broadcast_operands(InferContext& cx);

// A sample with as many operands as `op` has, of one dtype, that broadcast to each other.
Sample sample_pointwise(const Operator& op, uint64_t seed);

// Whether recomputing a result element costs more than reading it back, that is, takes at least a
// division or a root. `op` is the call's operator, elementwise or broadcast.
bool is_costly(const Operator& op, const Call& call);

// Whether an element is computed by what kernels have and bytecode's instructions don't: elementary
// functions (a power, exp, sin ...), and the bits of floats as other numbers.
bool needs_kernel(const Operator& op, const Call& call);

}  // namespace tenon::graph
