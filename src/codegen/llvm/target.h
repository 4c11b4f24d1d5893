// What kernels are compiled for: an architecture and the CPU features that they may use.
//
// A feature that isn't listed is never used, so a kernel object needs exactly the features that its
// table names (vm/executable/cpu_features.def) beyond the architecture's first version. `tune` only
// picks instruction costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loop/schedule.h"

namespace tenon::codegen {

struct Target {
  std::string architecture;  // "x86_64" or "aarch64"
  std::string cpu;           // as --cpu takes it and messages print it: "znver4", "x86-64-v3"
  std::string tune;          // LLVM's name of the CPU to tune for
  std::vector<std::string> features;  // LLVM's names, in the order of their numbers
  int64_t vector_bytes = 16;          // of one vector register

  bool has(std::string_view feature) const;
  loop::TargetFacts facts() const;
  std::string triple() const;  // "x86_64-unknown-linux-gnu"
  bool operator==(const Target&) const = default;
};

// The machine that this process runs on.
Target host_target();

// "native", an architecture level ("x86-64", "x86-64-v2", "-v3", "-v4", "aarch64"), or a CPU by
// LLVM's name ("znver4", "skylake-avx512"). An Error (Usage) for any other text.
Target parse_target(std::string_view text);

// What constants are folded with, the same on every machine of an architecture: x86-64-v2 or
// aarch64. Its results don't depend on the machine that compiles, and any supported one runs it.
Target baseline_target();

std::string llvm_version();  // "19.1.7"

// "znver4 (avx2 fma ... )": what is stored in a file and shown to a person.
std::string to_text(const Target& target);

}  // namespace tenon::codegen
