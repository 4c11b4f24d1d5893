// The target of compiled kernels: an architecture and the CPU features that code may use.
//
// Code uses only the listed features, so a kernel object needs exactly the features that its table
// names (vm/executable/cpu_features.def) beyond the architecture's first version. `tune` only
// affects instruction costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loop/schedule.h"

namespace tenon::codegen {

struct Target {
  std::string architecture;           // "x86_64" or "aarch64"
  std::string cpu;                    // as in --cpu and in messages: "znver4", "x86-64-v3"
  std::string tune;                   // LLVM's name of the CPU to tune for
  std::vector<std::string> features;  // LLVM's names, in the order of their numbers
  int64_t vector_bytes = 16;          // of one vector register

  bool has(std::string_view feature) const;
  loop::TargetFacts facts() const;
  std::string triple() const;  // "x86_64-unknown-linux-gnu"
  bool operator==(const Target&) const = default;
};

// The machine that this process runs on.
Target host_target();

// Parses a CPU of an architecture ("x86_64" or "aarch64"; by default the host's): "native", if that
// is the host's; a level ("x86-64", "x86-64-v2", "-v3", "-v4", "aarch64"); or LLVM's name of a CPU
// ("znver4", "cortex-a76"). A Usage error for any other text. Code for AArch64 uses the base
// architecture; the CPU's name only tunes it.
Target parse_target(std::string_view text, std::string_view architecture = {});

// The architecture of a triple such as "aarch64-linux-gnu". A Usage error for unsupported triples:
// only x86_64 and aarch64 on Linux are supported.
std::string architecture_of(std::string_view triple);
std::string_view host_architecture();

// Orders targets of one architecture, starting with those that run on most machines: by the number
// of features, then by name.
bool is_lower(const Target& a, const Target& b);

// The default CPU for code for another machine: x86-64-v2 or aarch64.
Target base_target(std::string_view architecture);

// The target for folding constants: the architecture's base target. Results then don't depend on
// the machine that compiles, and run on any supported machine.
Target baseline_target();

std::string llvm_version();  // "19.1.7"

// Text for files and people: "znver4 (avx2 fma ... )".
std::string to_text(const Target& target);

}  // namespace tenon::codegen
