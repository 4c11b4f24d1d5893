// Native code as assembly text for people.
#pragma once

#include <string>
#include <string_view>

namespace tenon::codegen {

// The code of a kernel object, with one instruction per line after its address, and the name of
// each kernel on a line before its entry, which the rest of its code follows. Branches show the
// address of their target; invalid bytes are shown as `.byte`. Errors: Damaged if `elf` is not an
// ELF object; Unsupported for an architecture that this LLVM can't disassemble.
std::string disassemble(std::string_view elf);

}  // namespace tenon::codegen
