// Random valid modules with every construct of graph IR, for tests of round trips.
#pragma once

#include <cstdint>

#include "graph/ir/module.h"

namespace tenon::graph {

// The module of a seed. Uses the operators of register_test_operators.
Module random_module(uint64_t seed);

}  // namespace tenon::graph
