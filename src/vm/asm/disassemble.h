// The disassembler: prints any Unit, even one that the verifier refuses, as text that the assembler
// reads back to the same Unit.
#pragma once

#include <cstdint>
#include <string>

#include "vm/isa/unit.h"

namespace tenon::vm {

// How many elements of a constant are shown where the text is only for reading.
inline constexpr int64_t kShownConstantElements = 64;

struct DisassembleOptions {
  // Tensor constants with more elements are printed as `elided`, which doesn't read back.
  int64_t max_constant_elements = INT64_MAX;
  // Print kernel objects in full; otherwise only a comment with their size.
  bool kernel_objects = true;
  bool spans = true;
};

std::string disassemble(const Unit& unit, const DisassembleOptions& options = {});

}  // namespace tenon::vm
