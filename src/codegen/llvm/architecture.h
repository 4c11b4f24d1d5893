// The architectures that code can be compiled for, and their CPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen {

struct Architecture {
  std::string name;                 // as in triples: "x86_64"
  const char* emulation;            // LLD's name of the object format
  const char* base_cpu;             // LLVM's CPU that has nothing but the first version
  std::vector<std::string> levels;  // CPU names that stand for a version of the architecture
  const char* default_cpu;          // for code for another machine
  // Whether code uses the optional features of its CPU and runs where they are present. If not, it
  // runs on every CPU and is only tuned for the one named.
  bool uses_features;
  int64_t vector_registers;  // AVX-512 doubles them
  // Features of cpu_features.def that every CPU has, or instructions that do the same.
  std::vector<std::string> always;

  std::string triple() const;  // as users write it: "x86_64-linux-gnu"
};

const std::vector<Architecture>& architectures();

// The architecture of that name, or of this machine. An Unsupported error if the table doesn't list
// it.
const Architecture& architecture(std::string_view name);
const Architecture& host_architecture();

// The architecture of a triple: "aarch64-linux-gnu", "aarch64-unknown-linux-gnu" or "aarch64". A
// Usage error for others.
const Architecture& architecture_of(std::string_view triple);

// The CPUs of an architecture that parse_target accepts, except "native": the levels, then LLVM's
// names in alphabetical order.
std::vector<std::string> cpu_names(const Architecture& architecture);

// Examples of CPUs and all targets, for completion: "native" and the levels; the triples.
std::vector<std::string> common_cpus();
std::vector<std::string> triples();

}  // namespace tenon::codegen
