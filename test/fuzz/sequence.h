// Random sequences of calls of an interface: of the C interface (c_api_sequence.cc) and of the
// compiler's functions (compiler_sequence.cc). A sequence depends only on its choices.
#pragma once

#include <string>

#include "instruction_generator.h"

namespace tenon::fuzz {

struct SequenceOutcome {
  long values = 0, errors = 0;  // calls that succeeded; that failed
  std::string problem;          // of a finding
};

SequenceOutcome call_c_api(Choices choices);
SequenceOutcome call_compiler(Choices choices);

// The command PROGRAM COUNT FIRST: makes sequences FIRST to FIRST + COUNT - 1. Returns the exit
// code, 0 without a finding.
int run_sequences(int argc, char** argv, SequenceOutcome (*run)(Choices));

}  // namespace tenon::fuzz
