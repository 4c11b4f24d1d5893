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

// A CPU of an architecture ("x86_64" or "aarch64"; the host's unless given): "native", where that
// is the host's; a level ("x86-64", "x86-64-v2", "-v3", "-v4", "aarch64"); or a CPU by LLVM's name
// ("znver4", "cortex-a76"). An Error (Usage) for any other text. Code for AArch64 uses the base
// architecture; a CPU's name tunes it.
Target parse_target(std::string_view text, std::string_view architecture = {});

// The architecture of a triple such as "aarch64-linux-gnu". An Error (Usage) for others than those
// that code can be made for: x86_64 and aarch64, on Linux.
std::string architecture_of(std::string_view triple);
std::string_view host_architecture();

// Orders targets of one architecture from the one that is fit for most machines up: by the number
// of features, then by name.
bool is_lower(const Target& a, const Target& b);

// The CPU that code for another machine is made for where none is named: x86-64-v2 or aarch64.
Target base_target(std::string_view architecture);

// What constants are folded with, the same on every machine of an architecture: its base
// target. Its results don't depend on the machine that compiles, and any supported one runs it.
Target baseline_target();

std::string llvm_version();  // "19.1.7"

// "znver4 (avx2 fma ... )": what is stored in a file and shown to a person.
std::string to_text(const Target& target);

}  // namespace tenon::codegen
