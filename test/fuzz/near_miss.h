// Makes programs that violate exactly one rule of the verifier (vm/isa/rules.def).
#pragma once

#include <string_view>

#include "instruction_generator.h"
#include "vm/executable/verify.h"

namespace tenon::fuzz {

// Changes a unit that the verifier accepts, or the format version that it is verified as, so that
// it violates the rule. Returns false, without a change, if this unit can't violate it; for
// example, arity needs a call.
bool break_rule(Choices& choices, vm::Rule rule, vm::Unit& unit, vm::VerifyContext& context);

// Why break_rule can't violate that rule in any unit, or "".
std::string_view unbreakable(vm::Rule rule);

// Whether an error of the verifier says that this rule is violated.
bool names_rule(const Error& refusal, vm::Rule rule);

}  // namespace tenon::fuzz
