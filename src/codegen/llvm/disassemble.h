// Native code as assembly, for a person to read.
#pragma once

#include <string>
#include <string_view>

namespace tenon::codegen {

// The code of a kernel object, an instruction per line behind its address; bytes that are no
// instruction as `.byte`. Throws Error: Damaged when `elf` is not an ELF object, Unsupported for an
// architecture that this LLVM has no disassembler for.
std::string disassemble(std::string_view elf);

}  // namespace tenon::codegen
