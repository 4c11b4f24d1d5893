// Programs that break one rule of the verifier (vm/isa/rules.def), and that one alone.
#pragma once

#include <string_view>

#include "instruction_generator.h"
#include "vm/executable/verify.h"

namespace tenon::fuzz {

// Changes a unit that the verifier accepts, or the format that it is verified as, so that it breaks
// the rule. False where the unit offers no place for that, as one without calls has none for arity;
// then it is unchanged.
bool break_rule(Choices& choices, vm::Rule rule, vm::Unit& unit, vm::VerifyContext& context);

// Why break_rule can't break that rule in any unit; "" for a rule that it breaks.
std::string_view unbreakable(vm::Rule rule);

}  // namespace tenon::fuzz
