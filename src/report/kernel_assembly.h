// The native code of a program's kernels, as text.
#pragma once

#include <map>
#include <string>

#include "vm/isa/unit.h"

namespace tenon::report {

// The code that this machine would run, by kernel: from its entry to the next one's, as many lines
// as a page shows. Empty without such code, or where it can't be disassembled.
std::map<std::string, std::string> assembly_of(const vm::Unit& unit);

}  // namespace tenon::report
