// Reads a loop that only counts and calls kernels as one kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/module.h"
#include "loop/recurrence.h"

namespace tenon::graph {

// What a variable of a loop ends as.
struct LoopEnd {
  enum Kind : uint8_t { kResult, kTripCount, kInitial } kind = kInitial;
  size_t result = 0;  // of the kernel, if it is one
};

// The kernel of a loop, and where its parameters and results come from.
struct LoopKernel {
  loop::RecurrenceRef kernel;
  std::vector<Operand> args;  // of the kernel, as in the loop's surroundings
  std::vector<Dim> integers;
  Dim trip_count;
  std::string name;           // wanted
  std::vector<LoopEnd> ends;  // of each variable
};

// Null if the loop can't be one kernel: it counts from 0 to a size whose symbols are in scope
// outside of the loop, and calls Computes of `kernels`, whose results are its next values and what
// it appends.
std::optional<LoopKernel> read_loop(const Loop& loop,
                                    const Map<String, loop::KernelInterfaceRef>& kernels,
                                    const std::function<bool(const std::string&)>& in_scope);

}  // namespace tenon::graph
