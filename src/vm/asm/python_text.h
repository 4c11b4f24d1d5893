// Bytecode as Python, for people who read Python better than assembly. It is documentation: valid
// syntax, but the machine's instructions, the kernels and packed functions aren't defined in it.
#pragma once

#include <string>

#include "vm/isa/unit.h"

namespace tenon::vm {

// A `def` for each function; `r3` is register 3, `c0` constant 0. In a function with jumps, `at` is
// the word offset of the block that runs. Of a unit that the verifier accepts.
std::string python_text(const Unit& unit);

}  // namespace tenon::vm
