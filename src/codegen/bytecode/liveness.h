// Liveness of virtual registers, per edge of control flow: where each one holds a value that is
// still used, where a value must be released, and which use is a value's last.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/bytecode/virtual_code.h"

namespace tenon::codegen {

// Positions count through the blocks in their order. A block begins at an even position with its
// parameters; then each instruction, and the block's exit, takes two: one at which it reads its
// operands and one at which it writes its results.
struct LiveRange {
  uint32_t from = 0, to = 0;  // the position behind the last
  bool operator==(const LiveRange&) const = default;
};

struct Liveness {
  // By register: ascending, with a gap between two. None of a register that is never written.
  std::vector<std::vector<LiveRange>> ranges;
  // By block: the registers to release at its start, which a branch to it leaves behind.
  std::vector<std::vector<Register>> kills;
};

// Marks the last uses of registers that own their value; drops results that nothing reads. Takes
// time near linear in the size of the code: what lives across many blocks costs nothing in them.
Liveness analyse_liveness(VirtualCode* code);

}  // namespace tenon::codegen
