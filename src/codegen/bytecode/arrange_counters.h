// Counting loops: moves their additions to where they cost least.
#pragma once

#include "codegen/bytecode/virtual_code.h"

namespace tenon::codegen {

// Moves a loop variable plus or minus a constant to the end of the body, if it is used only as the
// variable's next value: only there can it share the variable's register. The variable that the
// condition compares comes last, and first in the comparison, because the machine fuses consecutive
// addition, comparison and branch.
void arrange_counters(VirtualCode* code);

}  // namespace tenon::codegen
