// Which machines code is made for and whether libraries are used, as a user states it: by the
// command line's flags or by the options of the compiler's library.
#pragma once

#include <string>
#include <vector>

#include "driver/compile.h"

namespace tenon::driver {

struct CodeChoice {
  std::string target;             // a triple; empty: this machine's
  std::vector<std::string> cpus;  // empty: native, or the base of another architecture
  std::string libraries;          // "onednn" or "none"; empty: onednn where it can be used
  bool keep_computes = false;

  // Sets the targets, libraries and keep_computes of `options`. A Usage error for an unknown target
  // or CPU, for two CPUs of different architectures or with the same features, and for a library
  // that the rest of the choice excludes.
  void apply_to(CompileOptions* options) const;
};

}  // namespace tenon::driver
