// Registers of the frame for virtual ones, so that few are needed and few moves remain.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/bytecode/liveness.h"

namespace tenon::codegen {

struct Assignment {
  std::vector<uint32_t> registers;  // by virtual register; of one without ranges meaningless
  uint32_t count = 0;               // the frame's size
};

// First coalesces: what an edge passes and the parameter that takes it share a register where their
// ranges don't meet, those of inner loops first. Then gives each group the lowest register that is
// free from the group's first position to its last (linear scan; Poletto and Sarkar, 1999). The
// function's parameters are in registers 0, 1, ...
Assignment assign_registers(const VirtualCode& code, const Liveness& liveness);

}  // namespace tenon::codegen
