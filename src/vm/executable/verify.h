// The verifier: one linear pass over a unit, instruction by instruction, before any of it runs.
//
// It proves that words decode, that jumps target instructions of their function, that code can't
// run past its end, that every operand refers to something that exists, and that the sizes of
// isa/limits.h hold. It proves nothing about the types of values in registers: the machine compares
// tags before it reads payloads. The rules are in isa/rules.def and docs/isa.md.
#pragma once

#include <cstdint>
#include <string>

#include "vm/isa/operand_check.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct VerifyContext {
  std::string name = "program";  // the file, in errors
  uint32_t version = 0;          // its format; 0 for the format that this build writes
  uint64_t code_offset = 0;      // of the code section in the file; 0 if there is none
};

// Throws a Damaged error for the first broken rule.
void verify(const Unit& unit, const VerifyContext& context = {});

// The same error, for readers that find a rule broken before there is a unit.
Error verification_error(std::string_view name, Rule rule, std::string_view where,
                         std::string_view found, std::string_view expected);

}  // namespace tenon::vm
