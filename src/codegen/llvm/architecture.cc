#include "codegen/llvm/architecture.h"

#include <algorithm>

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/AArch64TargetParser.h"
#include "llvm/TargetParser/RISCVTargetParser.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/executable/cpu_features.h"

namespace tenon::codegen {
namespace {

using Names = std::vector<std::string>;

bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Names texts(const llvm::SmallVectorImpl<llvm::StringRef>& list) {
  Names names;
  for (llvm::StringRef name : list) names.push_back(name.str());
  return names;
}

// ---- x86_64 ----

Names x86_cpus() {
  llvm::SmallVector<llvm::StringRef, 128> list;
  llvm::X86::fillValidCPUArchList(list, /*Only64Bit=*/true);
  return texts(list);
}

Names x86_features(const std::string& cpu) {
  llvm::SmallVector<llvm::StringRef, 64> listed;
  llvm::X86::getFeaturesForCPU(cpu, listed);
  // A CPU doesn't list what its features imply: x86-64-v4 has AVX512BW, and so AVX512F.
  llvm::StringMap<bool> implied;
  for (llvm::StringRef feature : listed) {
    implied[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, true, implied);
  }
  Names features;
  for (const auto& feature : implied) {
    if (feature.second) features.push_back(feature.first().str());
  }
  return features;
}

Capabilities x86_capabilities(const Names& features) {
  const auto has = [&](std::string_view feature) { return contains(features, feature); };
  const bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  return {.fma = has("fma"),
          .rounding = has("sse4.1"),
          .half_conversion = has("f16c"),
          .scaling = wide,
          .dot_products = has("avx512vnni") || has("avxvnni"),
          .pair_products = true,
          .byte_matrices = wide && has("amx-tile") && has("amx-int8"),
          .vector_bytes = wide          ? 64
                          : has("avx2") ? 32
                                        : 16,
          .vector_registers = wide ? 32 : 16};
}

// ---- aarch64 ----

Names aarch64_cpus() {
  llvm::SmallVector<llvm::StringRef, 128> list;
  llvm::AArch64::fillValidCPUArchList(list);
  return texts(list);
}

Capabilities aarch64_capabilities(const Names&) {
  return {.fma = true,
          .rounding = true,
          .half_conversion = true,
          .scaling = false,
          .dot_products = false,
          .pair_products = false,
          .byte_matrices = false,
          .vector_bytes = 16,
          .vector_registers = 32};
}

// ---- riscv64 ----

// Those that have RV64GC: LLVM also names smaller CPUs.
Names riscv64_cpus() {
  const auto features = [](llvm::StringRef cpu) {
    llvm::SmallVector<std::string, 32> list;
    llvm::RISCV::getFeaturesForCPU(cpu, list);
    return Names(list.begin(), list.end());
  };
  const Names needed = features(architecture_of("riscv64").base_cpu);
  llvm::SmallVector<llvm::StringRef, 32> list;
  llvm::RISCV::fillValidCPUArchList(list, /*IsRV64=*/true);
  llvm::erase_if(list, [&](llvm::StringRef cpu) {
    const Names has = features(cpu);
    return !std::ranges::all_of(needed, [&](const auto& name) { return contains(has, name); });
  });
  return texts(list);
}

// RV64GC has 32 floating-point registers and no vectors. Conversions of f16 and rounding to
// integral floats are extensions.
Capabilities riscv64_capabilities(const Names&) {
  return {.fma = true,
          .rounding = false,
          .half_conversion = false,
          .scaling = false,
          .dot_products = false,
          .pair_products = false,
          .byte_matrices = false,
          .vector_bytes = Capabilities::kScalarPair,
          .vector_registers = 16};
}

// ---- the table ----

constexpr std::string_view kBackEnds[] = {
#define TENON_BACK_END(name, ...) #name,
#include "codegen/llvm/back_ends.def"
};
static_assert(std::ranges::equal(kBackEnds, vm::kArchitectures),
              "back_ends.def and vm/executable/architectures.def list the same architectures");

}  // namespace

const std::vector<Architecture>& architectures() {
#define TENON_LIST(...) \
  { __VA_ARGS__ }
#define TENON_BACK_END(name, llvm_name, ...) {#name, __VA_ARGS__},
  static const std::vector<Architecture> all = {
#include "codegen/llvm/back_ends.def"
  };
#undef TENON_LIST
  return all;
}

const Architecture& host_architecture() {
  for (const Architecture& each : architectures()) {
    if (each.name == vm::kHostArchitecture) return each;
  }
  Names names;
  for (const Architecture& each : architectures()) names.push_back(each.name);
  throw Error(ErrorKind::Unsupported,
              cat("there is no code generation for ", vm::kHostArchitecture))
      .expected(join(names, ", "));
}

std::string Architecture::triple() const {
  return name + "-linux-gnu";
}

std::string Architecture::llvm_triple() const {
  return name + "-unknown-linux-gnu";
}

const Architecture& architecture_of(std::string_view triple) {
  for (const Architecture& each : architectures()) {
    if (triple == each.name || triple == each.triple() || triple == each.llvm_triple()) return each;
  }
  throw Error(ErrorKind::Usage, cat("unknown target '", printable(triple), "'"))
      .expected(join(triples(), " or "));
}

Names cpu_names(const Architecture& architecture) {
  Names names = architecture.levels, others;
  for (const std::string& cpu : architecture.cpus()) {
    if (!contains(names, cpu)) others.push_back(cpu);
  }
  std::ranges::sort(others);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

Names common_cpus() {
  Names names = {"native"};
  for (const Architecture& each : architectures()) {
    names.insert(names.end(), each.levels.begin(), each.levels.end());
  }
  return names;
}

Names triples() {
  Names names;
  for (const Architecture& each : architectures()) names.push_back(each.triple());
  return names;
}

}  // namespace tenon::codegen
