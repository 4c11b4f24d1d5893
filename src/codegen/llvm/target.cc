#include "codegen/llvm/target.h"

#include <algorithm>

#include "codegen/llvm/cpu_names.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/AArch64TargetParser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/executable/cpu_features.h"

namespace tenon::codegen {
namespace {

using vm::kHostArchitecture;

constexpr std::string_view kKnownFeatures[] = {
#define TENON_CPU_FEATURE(number, name, ...) name,
#include "vm/executable/cpu_features.def"
#undef TENON_CPU_FEATURE
};

int64_t widest_vector(const Target& t) {
  if (t.has("avx512f") && t.has("avx512bw") && t.has("avx512dq") && t.has("avx512vl")) return 64;
  return t.has("avx2") ? 32 : 16;
}

Target x86(std::string_view cpu, std::string_view tune,
           const std::vector<std::string_view>& available) {
  Target t;
  t.architecture = "x86_64";
  t.cpu = cpu;
  t.tune = tune;
  for (std::string_view name : kKnownFeatures) {
    // Kernels don't use tile registers, and requesting them would cost a system call on load.
    if (name.substr(0, 4) == "amx-") continue;
    if (std::find(available.begin(), available.end(), name) != available.end())
      t.features.emplace_back(name);
  }
  t.vector_bytes = widest_vector(t);
  return t;
}

Target aarch64(std::string_view cpu) {
  Target t;
  t.architecture = "aarch64";
  t.cpu = cpu;
  t.tune = cpu == "aarch64" ? "generic" : cpu;
  return t;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The names that stand for a version of an architecture instead of a CPU.
std::vector<std::string> level_names(std::string_view architecture) {
  if (architecture == "aarch64") return {"aarch64"};
  return {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
}

bool is_level(const std::string& cpu, std::string_view architecture) {
  return contains(level_names(architecture), cpu);
}

bool is_cpu(const std::string& text, std::string_view architecture) {
  return contains(cpu_names(architecture), text);
}

[[noreturn]] void unknown_cpu(const std::string& text, std::string_view architecture) {
  std::string help = "`tenon targets` lists the names";
  for (std::string_view other : kArchitectures) {
    if (other == architecture || !is_cpu(text, other)) continue;
    help = cat("it is one of ", other, ": choose the target ", other, "-linux-gnu");
  }
  const std::string near = nearest(text, cpu_names(architecture));
  if (!near.empty()) help = cat("did you mean ", near, "? ", help);
  throw Error(ErrorKind::Usage, cat("unknown ", architecture, " CPU '", printable(text), "'"))
      .expected(cat(architecture == kHostArchitecture ? "native, " : "",
                    join(level_names(architecture), ", "), ", or the name of a CPU"))
      .help(help);
}

}  // namespace

bool Target::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

loop::TargetFacts Target::facts() const {
  loop::TargetFacts facts;
  facts.vector_bytes = vector_bytes;
  // AVX-512 doubles the number of vector registers; AArch64 always has 32.
  facts.vector_registers = vector_bytes >= 64 || architecture == "aarch64" ? 32 : 16;
  // The smallest cache of common CPUs with such vectors. It depends on the CPU's name alone, so
  // that the same --cpu gives the same code on every machine.
  facts.l2_bytes = vector_bytes >= 64 ? 1 << 20 : vector_bytes >= 32 ? 512 << 10 : 256 << 10;
  facts.dot_products = has("avx512vnni") || has("avxvnni");
  return facts;
}

std::string Target::triple() const {
  return architecture + "-unknown-linux-gnu";
}

Target host_target() {
  std::string cpu = llvm::sys::getHostCPUName().str();
  if (kHostArchitecture == "aarch64") return aarch64("aarch64");
  const auto host_features = llvm::sys::getHostCPUFeatures();
  std::vector<std::string_view> available;
  for (const auto& feature : host_features)
    if (feature.second) available.emplace_back(feature.first().data(), feature.first().size());
  return x86(cpu, cpu, available);
}

std::string_view host_architecture() {
  return kHostArchitecture;
}

std::vector<std::string> cpu_names(std::string_view architecture) {
  llvm::SmallVector<llvm::StringRef, 128> known;
  if (architecture == "aarch64") {
    llvm::AArch64::fillValidCPUArchList(known);
  } else {
    llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  }
  std::vector<std::string> names = level_names(architecture), others;
  for (llvm::StringRef name : known) {
    if (!is_level(name.str(), architecture)) others.push_back(name.str());
  }
  std::ranges::sort(others);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

std::string architecture_of(std::string_view triple) {
  const std::string_view architecture = triple.substr(0, triple.find('-'));
  const bool known = std::ranges::find(kArchitectures, architecture) != std::end(kArchitectures);
  for (std::string_view rest : {"", "-linux-gnu", "-unknown-linux-gnu"}) {
    if (known && triple.substr(architecture.size()) == rest) return std::string(architecture);
  }
  throw Error(ErrorKind::Usage, cat("unknown target '", triple, "'"))
      .expected("x86_64-linux-gnu or aarch64-linux-gnu");
}

bool is_lower(const Target& a, const Target& b) {
  if (a.features.size() != b.features.size()) return a.features.size() < b.features.size();
  return a.cpu < b.cpu;
}

Target parse_target(std::string_view text, std::string_view architecture) {
  if (architecture.empty()) architecture = text == "aarch64" ? text : kHostArchitecture;
  if (text == "native" && architecture == kHostArchitecture) return host_target();
  const std::string name(text);
  if (!is_cpu(name, architecture)) unknown_cpu(name, architecture);
  if (architecture == "aarch64") return aarch64(text);
  llvm::SmallVector<llvm::StringRef, 64> listed;
  llvm::X86::getFeaturesForCPU({text.data(), text.size()}, listed);
  // A CPU doesn't list what its features imply: x86-64-v4 has AVX512BW, and so AVX512F.
  llvm::StringMap<bool> implied;
  for (llvm::StringRef feature : listed) {
    implied[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, true, implied);
  }
  std::vector<std::string_view> available;
  for (const auto& feature : implied) {
    if (feature.second) available.emplace_back(feature.first().data(), feature.first().size());
  }
  return x86(text, is_level(name, architecture) ? "generic" : text, available);
}

Target base_target(std::string_view architecture) {
  return parse_target(architecture == "aarch64" ? "aarch64" : "x86-64-v2", architecture);
}

Target baseline_target() {
  return base_target(kHostArchitecture);
}

std::string to_text(const Target& target) {
  return target.features.empty() ? target.cpu
                                 : cat(target.cpu, " (", join(target.features, " "), ")");
}

std::string llvm_version() {
  return LLVM_VERSION_STRING;
}

}  // namespace tenon::codegen
