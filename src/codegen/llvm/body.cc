#include "codegen/llvm/lower.h"
#include "codegen/llvm/size.h"
#include "codegen/llvm/statement.h"
#include "support/error.h"

namespace tenon::codegen {

std::string symbol_of(const loop::Kernel& kernel) {
  return cat(kernel.name.view().starts_with("llvm.") ? "kernel." : "", kernel.name);
}

llvm::Function* write_body(ModuleWriter& m, const loop::Kernel& kernel, CodeSize& size) {
  const std::vector<std::string> symbols = kernel_symbols(kernel);
  std::vector<llvm::Type*> types(1 + kernel.inputs.size() + kernel.outputs.size(), m.pointer);
  types.resize(types.size() + symbols.size(), m.i64);
  llvm::Function* function =
      m.function(llvm::FunctionType::get(m.i32, types, false), cat(symbol_of(kernel), ".body"));
  function->addFnAttr(llvm::Attribute::NoInline);

  FunctionWriter f(m, kernel, size, function);
  llvm::Argument* argument = function->arg_begin();
  f.env.runtime = argument++;
  for (const auto* buffers : {&kernel.inputs, &kernel.outputs})
    for (const auto& buffer : *buffers) f.env.places[buffer.get()] = argument++;
  for (const std::string& symbol : symbols) {
    argument->setName(symbol);
    f.env.symbols[symbol] = argument++;
  }
  Facts facts(kernel);
  const AliasScopes alias(m.context, kernel);
  StatementWriter(f, facts, alias, kernel.body).statement(*kernel.body);
  f.finish();
  return function;
}

}  // namespace tenon::codegen
