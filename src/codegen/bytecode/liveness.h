// Liveness of virtual registers, per control-flow edge: where each one holds a value that is still
// used, where a value must be released, and which use is the last.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/bytecode/virtual_code.h"

namespace tenon::codegen {

// Positions number the blocks' code in order. A block starts at an even position with its
// parameters; then each instruction, and the block's exit, takes two positions: one for reading its
// operands and one for writing its results.
struct LiveRange {
  uint32_t from = 0, to = 0;  // half-open: `to` is excluded
  bool operator==(const LiveRange&) const = default;
};

struct Liveness {
  // By register: in ascending order, with gaps between them. Empty for a register that is never
  // written.
  std::vector<std::vector<LiveRange>> ranges;
  // By block: registers to release at its start, because a branch to it leaves them behind.
  std::vector<std::vector<Register>> kills;
};

// Marks the last uses of owning registers and drops results that are never read. Takes nearly
// linear time: a register that lives across many blocks costs nothing in them.
Liveness analyse_liveness(VirtualCode* code);

// Removes moves to nowhere that aren't the last use of what they move, and so don't release it.
void remove_unneeded_releases(VirtualCode* code);

}  // namespace tenon::codegen
