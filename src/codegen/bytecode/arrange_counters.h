// Loops that count: their additions go where they cost least.
#pragma once

#include "codegen/bytecode/virtual_code.h"

namespace tenon::codegen {

// A loop's variable plus or minus a constant, used for nothing but the variable's next value, moves
// to the end of the body: only there can it share the variable's register. The one that the
// condition compares comes last, and first in the comparison, since the machine runs an addition, a
// comparison and a branch in a row as one.
void arrange_counters(VirtualCode* code);

}  // namespace tenon::codegen
