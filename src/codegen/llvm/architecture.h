// The architectures that code can be compiled for, and their CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen {

// What code for a target may use, in terms that mean the same on every architecture. Schedules and
// the translation to LLVM IR depend on these, never on an architecture's own features.
struct Capabilities {
  bool fma = false;              // an instruction multiplies and adds floats, rounding once
  bool rounding = false;         // an instruction rounds floats to integral values
  bool half_conversion = false;  // an instruction converts between f16 and f32
  bool scaling = false;          // one multiplies vectors of floats by powers of two
  bool dot_products = false;     // as in loop/target_facts.def
  bool pair_products = false;    // as there
  bool byte_matrices = false;    // as there
  int64_t vector_bytes = 16;     // of one vector register, or kScalarPair
  int64_t vector_registers = 16;

  // The `vector_bytes` of architectures without vectors: two f32, each in its own register.
  static constexpr int64_t kScalarPair = 8;

  bool operator==(const Capabilities&) const = default;
};

struct Architecture {
  std::string name;                    // as in triples: "x86_64"
  const char* emulation;               // LLD's name of the object format
  const char* base_cpu;                // LLVM's CPU that has nothing but the first version
  const char* abi;                     // LLVM's name for C's ABI; "" for the only one
  std::vector<std::string> levels;     // CPU names that stand for a version of the architecture
  const char* default_cpu;             // for code for another machine
  std::vector<std::string> (*cpus)();  // LLVM's names, in any order
  // LLVM's names of the features that a CPU has. Null if code uses no optional features: it then
  // runs on every CPU and is only tuned for the one named.
  std::vector<std::string> (*features)(const std::string& cpu);
  // Whether LLVM has the calling convention of compiled bytecode (vm/executable/code_abi.h).
  bool compiles_bytecode;
  Capabilities (*capabilities)(const std::vector<std::string>& features);

  std::string triple() const;       // as users write it: "x86_64-linux-gnu"
  std::string llvm_triple() const;  // as in files: "x86_64-unknown-linux-gnu"
};

const std::vector<Architecture>& architectures();

// The architecture of this machine. An Unsupported error if the table doesn't list it.
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
