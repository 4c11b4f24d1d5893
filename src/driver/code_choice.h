// The user's choice of target machines and libraries, from flags of the command line or options of
// the compiler's library.
#pragma once

#include <string>
#include <vector>

#include "driver/compile.h"

namespace tenon::driver {

struct CodeChoice {
  std::string target;             // a triple; empty: this machine's
  std::vector<std::string> cpus;  // empty: native, or the baseline of another architecture
  std::string libraries;          // "onednn" or "none"; empty: onednn if it can be used
  bool keep_computes = false;

  // Sets the targets, libraries and keep_computes of `options`. Throws Usage for an unknown target
  // or CPU, for two CPUs of different architectures or with the same features, and for a library
  // that the other choices exclude.
  void apply_to(CompileOptions* options) const;
};

}  // namespace tenon::driver
