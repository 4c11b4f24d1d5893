// Assigns virtual registers to registers of the frame, using few registers and few moves.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/bytecode/liveness.h"

namespace tenon::codegen {

struct Assignment {
  std::vector<uint32_t> registers;  // by virtual register; unspecified for one without ranges
  uint32_t count = 0;               // the frame's size
};

// First coalesces: an edge's argument and its parameter share a register if their ranges don't
// overlap, starting with inner loops. Then gives each group the lowest register that is free from
// the group's first position to its last (linear scan; Poletto and Sarkar, 1999). The function's
// parameters are in registers 0, 1, ...
Assignment assign_registers(const VirtualCode& code, const Liveness& liveness);

}  // namespace tenon::codegen
