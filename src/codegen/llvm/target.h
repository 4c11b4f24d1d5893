// The target of compiled kernels: an architecture and the CPU features that code may use.
//
// Code uses only the listed features, so a kernel object needs exactly the features that its table
// names (vm/executable/cpu_features.def) beyond the architecture's first version. `tune` only
// affects instruction costs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "loop/tiling.h"

namespace tenon::codegen {

struct Target {
  const Architecture* architecture = nullptr;  // one of architectures(); null until it is chosen
  std::string cpu;                             // as in --cpu and in messages: "znver4", "x86-64-v3"
  std::string tune;                            // LLVM's name of the CPU to tune for
  std::vector<std::string> features;           // LLVM's names, in the order of their numbers
  Capabilities capabilities;                   // those that the features give

  loop::TargetFacts facts() const;
  bool operator==(const Target&) const = default;
};

// The machine that this process runs on.
Target host_target();

// Parses a CPU: "native", a level ("x86-64-v3", "aarch64") or LLVM's name ("znver4", "cortex-a76").
// It must be one of `architecture`, and of this machine's for "native"; by default a level chooses
// its own architecture, and other names are of this machine's. A Usage error for any other text.
Target parse_target(std::string_view text, const Architecture* architecture = nullptr);

// Orders targets of one architecture, starting with those that run on most machines: by the number
// of features, then by name.
bool is_lower(const Target& a, const Target& b);

// The target for any machine of an architecture: its default CPU.
Target base_target(const Architecture& architecture);

// The target for folding constants: the architecture's base target. Results then don't depend on
// the machine that compiles, and run on any supported machine.
Target baseline_target();

std::string llvm_version();  // "19.1.7"
// LLVM's names of the architectures that this build's LLVM can generate code for, in alphabetical
// order. Those of back_ends.def are among them.
std::vector<std::string> llvm_code_generators();

// Text for files and people: "znver4 (avx2 fma ... )".
std::string to_text(const Target& target);

}  // namespace tenon::codegen
