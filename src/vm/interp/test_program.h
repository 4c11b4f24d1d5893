// For tests: programs from assembly text, and errors as text.
#pragma once

#include <string>
#include <string_view>

#include "vm/asm/assemble.h"
#include "vm/interp/program.h"

namespace tenon::vm {

inline Unit unit_of(std::string_view text) { return assemble(text); }

inline Ref<Program> program_of(std::string_view text, ProgramOptions options = {}) {
  return Program::from_unit(assemble(text), std::move(options));
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
