// For tests: programs of units, and errors as text.
#pragma once

#include <string>

#include "vm/interp/program.h"

namespace tenon::vm {

inline Ref<Program> program_of(Unit unit, ProgramOptions options = {}) {
  return Program::from_unit(std::move(unit), std::move(options));
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.render();
  }
  return "no error";
}

}  // namespace tenon::vm
