#include "codegen/llvm/target.h"

#include <algorithm>
#include <set>

#include "codegen/llvm/architecture.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
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

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Target make_target(const Architecture& architecture, std::string_view cpu,
                   const std::vector<std::string>& available) {
  Target t;
  t.architecture = &architecture;
  t.cpu = cpu;
  t.tune = contains(architecture.levels, cpu) ? "generic" : cpu;
  for (std::string_view name : kKnownFeatures) {
    // Kernels don't multiply matrices of bf16.
    if (name != "amx-bf16" && contains(available, name)) t.features.emplace_back(name);
  }
  t.capabilities = architecture.capabilities(t.features);
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
  if (text.find_first_of(", ") != std::string_view::npos) help = "several CPUs are a list of names";
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

loop::TargetFacts Target::facts() const {
  loop::TargetFacts facts;
  facts.vector_bytes = capabilities.vector_bytes;
  facts.vector_registers = capabilities.vector_registers;
  // The smallest cache of common CPUs with such vectors. It depends on the CPU's name alone, so
  // that the same --cpu gives the same code on every machine.
  facts.l2_bytes = facts.vector_bytes >= 64   ? 1 << 20
                   : facts.vector_bytes >= 32 ? 512 << 10
                                              : 256 << 10;
  facts.dot_products = capabilities.dot_products;
  facts.pair_products = capabilities.pair_products;
  facts.byte_matrices = capabilities.byte_matrices;
  return facts;
}

Target host_target() {
  const Architecture& host = host_architecture();
  if (!host.features) return base_target(host);
  std::vector<std::string> available;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    if (feature.second) available.push_back(feature.first().str());
  }
  // The system may refuse a process registers that the processor has.
  for (const std::string& missing : vm::missing_cpu_features(available))
    std::erase(available, missing);
  return make_target(host, llvm::sys::getHostCPUName().str(), available);
}

bool is_lower(const Target& a, const Target& b) {
  if (a.features.size() != b.features.size()) return a.features.size() < b.features.size();
  return a.cpu < b.cpu;
}

Target parse_target(std::string_view text, const Architecture* given) {
  const Architecture& architecture = given ? *given : architecture_of_cpu(text);
  if (text == "native" && architecture.name == vm::kHostArchitecture) return host_target();
  if (!contains(cpu_names(architecture), text)) unknown_cpu(text, architecture);
  if (!architecture.features) return make_target(architecture, text, {});
  return make_target(architecture, text, architecture.features(std::string(text)));
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

std::vector<std::string> llvm_code_generators() {
  static const std::vector<std::string> names = [] {
    // In a build with LLVM linked statically, these functions do nothing for targets that aren't
    // linked (layer.cmake).
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    std::set<std::string> found;
    for (const llvm::Target& target : llvm::TargetRegistry::targets()) {
      if (target.hasTargetMachine()) found.insert(target.getBackendName());
    }
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return names;
}

}  // namespace tenon::codegen
