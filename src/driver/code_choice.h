// What the options target, cpu, libraries and keep_computes choose together.
#pragma once

#include <vector>

#include "codegen/llvm/target.h"
#include "driver/compile.h"

namespace tenon::driver {

struct CodeChoice {
  // Lowest first (codegen::is_lower), all of one architecture; never empty. Graph passes optimise
  // for the first; loop nests and code are generated for each.
  std::vector<codegen::Target> targets;
  bool libraries = true;  // whether calls of libraries may replace kernels
};

// Throws Usage for an unknown target or CPU, for two CPUs of different architectures or with the
// same features, and for libraries that the other options exclude.
CodeChoice choose_code(const CompileOptions& options);

}  // namespace tenon::driver
