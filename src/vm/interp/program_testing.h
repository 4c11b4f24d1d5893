// For tests: programs from units, and errors as text (support/test_error.h).
#pragma once

#include "support/error_testing.h"
#include "vm/interp/program.h"

namespace tenon::vm {

inline Ref<Program> program_of(Unit unit, ProgramOptions options = {}) {
  return Program::from_unit(std::move(unit), std::move(options));
}

}  // namespace tenon::vm
