// The cost model of scalar expressions, from which fusion, hoisting and the sharing of loops
// decide.
#pragma once

#include "loop/expr.h"

namespace tenon::loop {

// Costs are counted in quarters of a simple operation on data (a load, a product, a comparison of
// floats).
inline constexpr int64_t kSimpleCost = 4, kDivisionCost = 5 * kSimpleCost,
                         kTranscendentalCost = 20 * kSimpleCost;

// What evaluating `root` once costs, each shared part once. Arithmetic on indices and truths costs
// a quarter of a simple operation, since schedules hoist most of it out of the inner loop.
int64_t cost(const ExprRef& root);

// Whether the node itself, its operands aside, is worth keeping in a variable rather than computing
// again in every turn of a loop.
bool is_costly(const Expr& e);

}  // namespace tenon::loop
