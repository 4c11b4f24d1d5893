#include "report/kernel_assembly.h"

#include <optional>
#include <sstream>

#include "codegen/llvm/disassemble.h"
#include "vm/executable/kernel_choice.h"

namespace tenon::report {
namespace {

constexpr size_t kMostLines = 600;

}  // namespace

std::map<std::string, std::string> assembly_of(const vm::Unit& unit) {
  std::map<std::string, std::string> out;
  const vm::KernelTarget* target = vm::choose_kernels(unit, std::nullopt);
  const vm::KernelImage* object = target ? target->host_object() : nullptr;
  if (!object) return out;
  std::string all;
  try {
    all = codegen::disassemble(object->bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return out;
  }
  std::istringstream lines(all);
  std::string line, *current = nullptr;
  size_t count = 0;
  while (std::getline(lines, line)) {
    if (!line.empty() && line.back() == ':' && line[0] != ' ') {
      current = &out[line.substr(0, line.size() - 1)];
      count = 0;
    } else if (current && count <= kMostLines) {
      *current += ++count > kMostLines ? "...\n" : line + "\n";
    }
  }
  return out;
}

}  // namespace tenon::report
