// Random programs: graphs of 5 to 20 operators with branches, loops, calls and recursion.
//
// A program is typed as it is made, by the builder, so that every one is valid. Values are kept
// small and functions smooth where errors of rounding meet them: two correct executions agree
// within `kTolerance`, and what differs by more is a bug.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::random_programs {

// |found - expected| <= kTolerance * (1 + |expected|)
inline constexpr double kTolerance = 2e-3;

// The module of number `seed`; its entry is @main. With `symbolic`, the sizes of @main's parameters
// are symbols, else numbers.
graph::Module graph_program(uint64_t seed, bool symbolic);

// Inputs for `function`, of its parameters' types: sizes from 1 to 4, seldom 0, one for each
// symbol; floats are small multiples of 1/4, and with `special` NaN and -0 among them; integers
// from -3 to 3.
std::vector<Any> random_inputs(const graph::FunctionExpr& function, uint64_t seed, bool special);

}  // namespace tenon::random_programs
