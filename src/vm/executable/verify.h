// The verifier: one linear pass over a unit, instruction by instruction, before anything of it
// runs.
//
// It proves that words decode, that jumps land on instructions of their function, that code can't
// run off its end, that every operand indexes something that exists, and that the sizes of
// isa/limits.h hold. It proves nothing about the types of values in registers: the machine compares
// tags before it reads payloads. The rules are isa/rules.def, explained in docs/isa.md.
#pragma once

#include <cstdint>
#include <string>

#include "vm/executable/load_limits.h"
#include "vm/isa/operand_check.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct VerifyContext {
  std::string name = "program";  // the file, in errors
  uint32_t version = 0;          // its format; 0 for what this build writes
  uint64_t code_offset = 0;      // where the code section starts in the file; 0 when there is none
  LoadBudget* budget = nullptr;  // as in ReadOptions
};

// Throws a Damaged error for the first rule that is broken.
void verify(const Unit& unit, const VerifyContext& context = {});

// That error, for readers that find a rule broken before there is a unit to verify.
Error verification_error(std::string_view name, Rule rule, std::string_view where,
                         std::string_view found, std::string_view expected);

}  // namespace tenon::vm
