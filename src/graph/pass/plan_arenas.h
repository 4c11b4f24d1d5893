// Places for a function's values of constant size, in arenas.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/pass/lifetimes.h"

namespace tenon::graph {

// A storage that is allocated once, in which each value has a place.
struct PlannedArena {
  std::unordered_map<const Var*, int64_t> offsets;  // by the storage that the arena replaces
  int64_t bytes = 0;
  const Binding* before = nullptr;  // where it is allocated
};

// The arenas of the values on one device: the function's, and those of blocks that would make it
// much larger. A value that fits in none keeps a storage of its own.
std::vector<PlannedArena> plan_arenas(const Lifetimes& lifetimes, int64_t device);

}  // namespace tenon::graph
