// The cost model of scalar expressions, used by fusion, hoisting and loop sharing.
#pragma once

#include "loop/expr.h"

namespace tenon::loop {

// The unit is a quarter of a simple operation on data (a load, a multiplication, a comparison of
// floats).
inline constexpr int64_t kSimpleCost = 4, kDivisionCost = 5 * kSimpleCost,
                         kTranscendentalCost = 20 * kSimpleCost;

// The cost of evaluating `root` once, with each shared part counted once. Arithmetic on indices and
// booleans costs a quarter of a simple operation, since schedules hoist most of it out of the inner
// loop.
int64_t cost(const ExprRef& root);

// The cost of the node itself, excluding its operands.
int64_t own_cost(const Expr& e);

// Whether the node itself, excluding its operands, is worth keeping in a variable instead of
// recomputing it in every iteration of a loop.
bool is_costly(const Expr& e);

// Whether bytecode has no instruction for the node itself: elementary functions, such as a power,
// exp or sin, and the bits of a float as another number or the other way round.
bool needs_kernel(const Expr& e);

}  // namespace tenon::loop
