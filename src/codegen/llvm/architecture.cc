#include "codegen/llvm/architecture.h"

#include <algorithm>

#include "llvm/TargetParser/AArch64TargetParser.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/executable/cpu_features.h"

namespace tenon::codegen {
namespace {

// LLVM's CPUs of each back end.
using CpuList = llvm::SmallVector<llvm::StringRef, 128>;
void list_cpus_of_X86(CpuList* list) {
  llvm::X86::fillValidCPUArchList(*list, /*Only64Bit=*/true);
}
void list_cpus_of_AArch64(CpuList* list) {
  llvm::AArch64::fillValidCPUArchList(*list);
}

}  // namespace

const std::vector<Architecture>& architectures() {
#define TENON_LIST(...) \
  { __VA_ARGS__ }
#define TENON_ARCHITECTURE(name, llvm_name, ...) {#name, __VA_ARGS__},
  static const std::vector<Architecture> all = {
#include "codegen/llvm/architectures.def"
  };
#undef TENON_LIST
  return all;
}

const Architecture& architecture(std::string_view name) {
  for (const Architecture& each : architectures()) {
    if (each.name == name) return each;
  }
  std::vector<std::string> names;
  for (const Architecture& each : architectures()) names.push_back(each.name);
  throw Error(ErrorKind::Unsupported, cat("there is no code generation for ", name))
      .expected(join(names, ", "));
}

const Architecture& host_architecture() {
  return architecture(vm::kHostArchitecture);
}

std::string Architecture::triple() const {
  return name + "-linux-gnu";
}

const Architecture& architecture_of(std::string_view triple) {
  for (const Architecture& each : architectures()) {
    for (const char* rest : {"", "-linux-gnu", "-unknown-linux-gnu"}) {
      if (triple == each.name + rest) return each;
    }
  }
  throw Error(ErrorKind::Usage, cat("unknown target '", printable(triple), "'"))
      .expected(join(triples(), " or "));
}

std::vector<std::string> cpu_names(const Architecture& architecture) {
  CpuList known;
#define TENON_ARCHITECTURE(row, llvm_name, ...) \
  if (architecture.name == #row) list_cpus_of_##llvm_name(&known);
#include "codegen/llvm/architectures.def"
  std::vector<std::string> names = architecture.levels, others;
  for (llvm::StringRef name : known) {
    if (std::ranges::find(names, name) == names.end()) others.push_back(name.str());
  }
  std::ranges::sort(others);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

std::vector<std::string> common_cpus() {
  std::vector<std::string> names = {"native"};
  for (const Architecture& each : architectures()) {
    names.insert(names.end(), each.levels.begin(), each.levels.end());
  }
  return names;
}

std::vector<std::string> triples() {
  std::vector<std::string> names;
  for (const Architecture& each : architectures()) names.push_back(each.triple());
  return names;
}

}  // namespace tenon::codegen
