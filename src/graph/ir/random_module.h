// Random modules that keep every rule and have every construct of graph IR: for round trips.
#pragma once

#include <cstdint>

#include "graph/ir/module.h"

namespace tenon::graph {

// The same module for the same seed. Needs the operators of register_test_operators.
Module random_module(uint64_t seed);

}  // namespace tenon::graph
