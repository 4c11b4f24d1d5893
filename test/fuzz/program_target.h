// The target for generated programs: writes, reads and runs a program, then violates each rule of
// the verifier in it, which must refuse it.
#pragma once

#include "instruction_generator.h"
#include "near_miss.h"
#include "tnx_target.h"
#include "vm/executable/write_file.h"

namespace tenon::fuzz {

struct ProgramOutcome {
  TnxOutcome run;
  int tried = 0, kept = 0;  // programs that ran while it was generated; those that returned
  int refused = 0;          // near misses
  std::string problem;      // of a finding
};

// Violates the rule in the unit; returns a finding, or "".
inline std::string refuse(Choices& choices, vm::Rule rule, vm::Unit unit, int* refused) {
  vm::VerifyContext context;
  if (!break_rule(choices, rule, unit, context)) return "";
  try {
    vm::verify(unit, context);
  } catch (const Error& e) {
    ++*refused;
    if (names_rule(e, rule)) return "";
    return cat("to break ", rule_name(rule), " gives ", e.render());
  }
  return cat("the verifier accepts what breaks ", rule_name(rule), "\n", vm::disassemble(unit));
}

inline ProgramOutcome run_program(Choices& choices) {
  ProgramOutcome outcome;
  try {
    const GeneratedUnit made = make_unit(choices);
    const vm::Unit& unit = made.unit;
    outcome.tried = made.tried;
    outcome.kept = made.kept;
    outcome.run = run_tnx(vm::write_to_bytes(unit), true, {});
    outcome.problem = outcome.run.problem;
    if (!outcome.run.loaded && outcome.problem.empty()) {
      outcome.problem = cat("a program can't be read again\n", vm::disassemble(unit));
    }
    for (vm::Rule rule : vm::all_rules()) {
      if (!outcome.problem.empty()) break;
      outcome.problem = refuse(choices, rule, unit, &outcome.refused);
    }
  } catch (const Error& e) {
    outcome.problem = e.render();
  }
  return outcome;
}

}  // namespace tenon::fuzz
