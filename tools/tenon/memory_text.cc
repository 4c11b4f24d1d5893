#include "tools/tenon/memory_text.h"

#include <cstdio>
#include <optional>
#include <set>
#include <vector>

#include "graph/ir/name_text.h"
#include "object/tensor.h"
#include "report/code_calls.h"
#include "report/memory_formula.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/isa/allocation.h"

namespace tenon::tool {
namespace {

// What a function allocates.
struct FunctionMemory {
  report::MemoryFormula formula;
  Dim with_sizes;  // the formula, with the sizes that are given
  uint64_t registers = 0, storages = 0;
  uint64_t known_bytes = 0;
  uint64_t unknown_sizes = 0;  // storages whose size is known when it runs

  // Null unless it is a number now.
  std::optional<int64_t> peak_bytes() const { return with_sizes.as_const(); }
};

void count_storages(const vm::Unit& unit, const vm::FunctionUnit& function, FunctionMemory* out) {
  out->registers = function.register_count;
  report::for_each_step(unit, function, [&](const report::CodeStep& step) {
    const auto block = vm::block_of(step.instruction);
    if (!block) return;
    ++out->storages;
    out->known_bytes += static_cast<uint64_t>(block->bytes.value_or(0));
    if (!block->bytes) ++out->unknown_sizes;
  });
}

Dim substituted(const Dim& formula, const Sizes& sizes) {
  if (sizes.empty()) return formula;
  try {
    return substitute(formula, [&](std::string_view symbol) -> std::optional<Dim> {
      auto found = sizes.find(std::string(symbol));
      if (found == sizes.end()) found = sizes.find(tenon::quoted(symbol));
      return found == sizes.end() ? std::nullopt : std::optional(Dim(found->second));
    });
  } catch (const Error& error) {
    throw Error(ErrorKind::Usage, "--dim: the memory for these sizes isn't a number")
        .found(error.message())
        .help("give smaller sizes");
  }
}

void check_names(const std::vector<FunctionMemory>& functions, const Sizes& sizes) {
  std::set<std::string> symbols;
  for (const FunctionMemory& function : functions) {
    symbols.insert(function.formula.sizes.begin(), function.formula.sizes.end());
    for (const auto& unknown : function.formula.unknowns) symbols.insert(unknown.symbol);
  }
  for (const auto& [name, value] : sizes) {
    bool known = symbols.contains(name);
    for (const std::string& symbol : symbols) known |= tenon::quoted(symbol) == name;
    if (known) continue;
    const std::vector<std::string> names(symbols.begin(), symbols.end());
    Error error(ErrorKind::Usage, cat("--dim ", name, "=", value, ": no formula has such a size"));
    error.expected(names.empty() ? "none: all sizes are known" : join(names, ", "));
    graph::suggest(&error, name, names);
    throw error;
  }
}

std::vector<FunctionMemory> memory_of(const vm::Unit& unit, const Sizes& sizes) {
  std::vector<FunctionMemory> out;
  std::vector<report::MemoryFormula> formulas = report::memory_formulas(unit);
  for (size_t i = 0; i < unit.functions.size(); ++i) {
    FunctionMemory& function = out.emplace_back();
    function.formula = std::move(formulas[i]);
    count_storages(unit, unit.functions[i], &function);
  }
  check_names(out, sizes);
  for (FunctionMemory& function : out) {
    function.with_sizes = substituted(function.formula.bytes, sizes);
  }
  return out;
}

}  // namespace

uint64_t constant_bytes(const vm::Unit& unit) {
  int64_t bytes = 0;
  for (const vm::Constant& constant : unit.constants) {
    if (auto tensor = constant.value.try_as<Tensor>(); tensor && *tensor) bytes += tensor->bytes();
  }
  return static_cast<uint64_t>(bytes);
}

void print_memory(const vm::Unit& unit, const Sizes& sizes) {
  const std::vector<FunctionMemory> all = memory_of(unit, sizes);
  for (size_t i = 0; i < all.size(); ++i) {
    const FunctionMemory& memory = all[i];
    std::string peak = to_text(memory.formula.bytes);
    const std::string with_sizes = to_text(memory.with_sizes);
    if (with_sizes != peak) peak += cat(" = ", with_sizes);
    std::printf("%s: peak %s bytes, %s, frame of %s\n", printable(unit.functions[i].name).c_str(),
                printable(peak).c_str(), counted(memory.storages, "storage").c_str(),
                counted(memory.registers, "register").c_str());
    for (const auto& unknown : memory.formula.unknowns) {
      std::printf("  %s: %s\n", printable(unknown.symbol).c_str(),
                  printable(unknown.meaning).c_str());
    }
  }
  std::printf("constants: %s\n", bytes_text(constant_bytes(unit)).c_str());
}

void write_memory(JsonWriter& out, const vm::Unit& unit, const Sizes& sizes) {
  const std::vector<FunctionMemory> all = memory_of(unit, sizes);
  out.key("functions").begin_array();
  for (size_t i = 0; i < all.size(); ++i) {
    const FunctionMemory& memory = all[i];
    out.begin_object().key("name").value(unit.functions[i].name);
    out.key("peak").value(to_text(memory.formula.bytes)).key("peak_bytes");
    const auto bytes = memory.peak_bytes();
    bytes ? out.value(*bytes) : out.null();
    out.key("sizes").begin_array();
    for (const std::string& size : memory.formula.sizes) out.value(size);
    out.end_array().key("unknowns").begin_array();
    for (const auto& unknown : memory.formula.unknowns) {
      out.begin_object().key("name").value(unknown.symbol);
      out.key("meaning").value(unknown.meaning).end_object();
    }
    out.end_array();
    out.key("registers").value(memory.registers).key("storages").value(memory.storages);
    out.key("known_bytes").value(memory.known_bytes);
    out.key("unknown_sizes").value(memory.unknown_sizes).end_object();
  }
  out.end_array().key("constant_bytes").value(constant_bytes(unit));
}

}  // namespace tenon::tool
