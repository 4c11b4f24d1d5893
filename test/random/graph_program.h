// Random programs: graphs of 5 to 20 operators with branches, loops, calls and recursion.
//
// The builder types a program as it is made, so every program is valid. Values are kept small, and
// functions of inexact values are continuous, so that two correct executions agree within
// `kTolerance`; a larger difference is a bug.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::random_programs {

// |found - expected| <= kTolerance * (1 + |expected|)
inline constexpr double kTolerance = 2e-3;

// The module for `seed`, with entry @main. With `symbolic`, the sizes of @main's parameters are
// symbols instead of numbers.
graph::Module graph_program(uint64_t seed, bool symbolic);

// Inputs of the types of `function`'s parameters. Each symbol is a size from 1 to 4, rarely 0;
// floats are small multiples of 1/4, with `special` also NaN and -0; integers are from -3 to 3.
std::vector<Any> random_inputs(const graph::FunctionExpr& function, uint64_t seed, bool special);

}  // namespace tenon::random_programs
