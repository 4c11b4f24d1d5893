// Where a function's code puts its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::report {

struct MemoryPlan {
  // A tensor's place, from the step that makes it to its last use.
  struct Slot {
    std::string name;  // what writes it
    int64_t offset = 0, bytes = 0;
    size_t from = 0, to = 0;
  };
  std::vector<Slot> slots;
  size_t steps = 0;
};

// The plan of the function `main`, or else of the first one. Tensors whose sizes depend on the
// arguments have no place in it; nullopt if no tensor has one.
std::optional<MemoryPlan> memory_plan_of(const vm::Unit& unit);

}  // namespace tenon::report
