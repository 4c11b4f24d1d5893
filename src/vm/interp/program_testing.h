// For tests: programs from units, kernels, and errors as text (support/error_testing.h).
#pragma once

#include <fstream>
#include <iterator>
#include <string_view>

#include "support/error_testing.h"
#include "vm/asm/assemble.h"
#include "vm/interp/program.h"

namespace tenon::vm {

inline Ref<Program> program_of(Unit unit, ProgramOptions options = {}) {
  return Program::from_unit(std::move(unit), std::move(options));
}

// A unit of assembly with the kernels of an object file, such as TENON_TEST_KERNELS, which is made
// of test_kernels.c.
inline Unit with_kernels(std::string_view assembly, const char* object) {
  Unit unit = assemble(assembly);
  std::ifstream in(object, std::ios::binary);
  std::string elf{std::istreambuf_iterator<char>(in), {}};
  unit.kernels.push_back({"x86_64-unknown-linux-gnu", "any", {}, {{ImageKind::Elf, "", elf}}});
  return unit;
}

}  // namespace tenon::vm
