// The disassembler: a Unit as text that the assembler reads back to the same Unit. It prints any
// unit, also one that the verifier refuses.
#pragma once

#include <cstdint>
#include <string>

#include "vm/isa/unit.h"

namespace tenon::vm {

struct DisassembleOptions {
  // Tensor constants with more elements are printed as `elided`, which doesn't read back.
  int64_t max_constant_elements = INT64_MAX;
  // Kernel objects in full; otherwise a comment with their size, and the text lacks them.
  bool kernel_objects = true;
  bool spans = true;
};

std::string disassemble(const Unit& unit, const DisassembleOptions& options = {});

}  // namespace tenon::vm
