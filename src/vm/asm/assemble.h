// The assembler: reads a program's text, which docs/assembly.md describes, into a Unit. It checks
// only what it needs for encoding, so that damaged programs can be written too: soundness is up to
// the verifier.
#pragma once

#include <string_view>

#include "vm/isa/unit.h"

namespace tenon::vm {

// `name` is the file's name in errors. Throws a Usage error for the first wrong line.
Unit assemble(std::string_view text, std::string_view name = "<text>");

// Whether the first line that isn't empty, a comment or a type is an assembly statement.
bool begins_like_assembly(std::string_view text);

}  // namespace tenon::vm
