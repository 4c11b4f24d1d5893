#include "codegen/llvm/target.h"

#include <algorithm>

#include "codegen/llvm/architecture.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/executable/cpu_features.h"

namespace tenon::codegen {
namespace {

constexpr std::string_view kKnownFeatures[] = {
#define TENON_CPU_FEATURE(number, name, ...) name,
#include "vm/executable/cpu_features.def"
#undef TENON_CPU_FEATURE
};

int64_t widest_vector(const Target& t) {
  if (t.has("avx512f") && t.has("avx512bw") && t.has("avx512dq") && t.has("avx512vl")) return 64;
  return t.has("avx2") ? 32 : 16;
}

// LLVM's features, which it maps to whether they are present.
template <class Features>
std::vector<std::string> present(const Features& features) {
  std::vector<std::string> names;
  for (const auto& feature : features) {
    if (feature.second) names.push_back(feature.first().str());
  }
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Target make_target(const Architecture& architecture, std::string_view cpu,
                   const std::vector<std::string>& available) {
  Target t;
  t.architecture = architecture.name;
  t.cpu = cpu;
  t.tune = contains(architecture.levels, cpu) ? "generic" : cpu;
  for (std::string_view name : kKnownFeatures) {
    // Kernels don't use tile registers, and requesting them would cost a system call on load.
    if (!name.starts_with("amx-") && contains(available, name)) t.features.emplace_back(name);
  }
  t.vector_bytes = widest_vector(t);
  return t;
}

[[noreturn]] void unknown_cpu(std::string_view text, const Architecture& architecture) {
  std::string help = "`tenon targets` lists the names";
  for (const Architecture& other : architectures()) {
    if (other.name == architecture.name || !contains(cpu_names(other), text)) continue;
    help = cat("it is one of ", other.name, ": choose the target ", other.triple());
  }
  std::string near = nearest(text, cpu_names(architecture));
  for (const auto& level : architecture.levels) {  // as in help: "x86-64-v2, -v3, -v4"
    if (level.ends_with(cat("-", text))) near = level;
  }
  if (!near.empty()) help = cat("did you mean ", near, "? ", help);
  const bool native = architecture.name == vm::kHostArchitecture;
  throw Error(ErrorKind::Usage, cat("unknown ", architecture.name, " CPU '", printable(text), "'"))
      .expected(
          cat(native ? "native, " : "", join(architecture.levels, ", "), ", or the name of a CPU"))
      .help(help);
}

// The architecture that has a level of this name; else this machine's.
const Architecture& architecture_of_cpu(std::string_view cpu) {
  for (const Architecture& each : architectures()) {
    if (contains(each.levels, cpu)) return each;
  }
  return host_architecture();
}

}  // namespace

bool Target::has(std::string_view feature) const {
  return contains(features, feature) ||
         contains(codegen::architecture(architecture).always, feature);
}

loop::TargetFacts Target::facts() const {
  loop::TargetFacts facts;
  facts.vector_bytes = vector_bytes;
  facts.vector_registers =
      vector_bytes >= 64 ? 32 : codegen::architecture(architecture).vector_registers;
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
  const Architecture& host = host_architecture();
  if (!host.uses_features) return base_target(host);
  return make_target(host, llvm::sys::getHostCPUName().str(),
                     present(llvm::sys::getHostCPUFeatures()));
}

bool is_lower(const Target& a, const Target& b) {
  if (a.features.size() != b.features.size()) return a.features.size() < b.features.size();
  return a.cpu < b.cpu;
}

Target parse_target(std::string_view text, const Architecture* given) {
  const Architecture& architecture = given ? *given : architecture_of_cpu(text);
  if (text == "native" && architecture.name == vm::kHostArchitecture) return host_target();
  if (!contains(cpu_names(architecture), text)) unknown_cpu(text, architecture);
  if (!architecture.uses_features) return make_target(architecture, text, {});
  llvm::SmallVector<llvm::StringRef, 64> listed;
  llvm::X86::getFeaturesForCPU({text.data(), text.size()}, listed);
  // A CPU doesn't list what its features imply: x86-64-v4 has AVX512BW, and so AVX512F.
  llvm::StringMap<bool> implied;
  for (llvm::StringRef feature : listed) {
    implied[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, true, implied);
  }
  return make_target(architecture, text, present(implied));
}

Target base_target(const Architecture& architecture) {
  return parse_target(architecture.default_cpu, &architecture);
}

Target baseline_target() {
  return base_target(host_architecture());
}

std::string to_text(const Target& target) {
  return target.features.empty() ? target.cpu
                                 : cat(target.cpu, " (", join(target.features, " "), ")");
}

std::string llvm_version() {
  return LLVM_VERSION_STRING;
}

}  // namespace tenon::codegen
