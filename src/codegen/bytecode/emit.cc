#include "codegen/bytecode/emit.h"

#include "codegen/bytecode/function_emitter.h"

namespace tenon::codegen {

vm::SignatureType signature_type(const graph::TypeRef& type) {
  return vm::parse_signature_type(to_text(graph::without_known_values(type)));
}

vm::Unit emit_unit(const graph::Module& module, const ResultNames& result_names) {
  vm::Unit unit;
  unit.producer = "tenon 0.1.0";
  // Every function has its place before any body is emitted: calls go forward and back.
  for (const auto& [name, function] : module->functions) {
    vm::FunctionUnit f;
    f.name = std::string(name);
    unit.functions.push_back(std::move(f));
  }
  size_t index = 0;
  ConstantPool constants(&unit);
  for (const auto& [name, function] : module->functions) {
    vm::FunctionUnit& f = unit.functions[index++];
    FunctionEmitter(&unit, &constants, *function).emit(&f);
    if (auto* names = result_names.find(name)) {
      for (const String& result : *names) {
        f.result_names.push_back(printable(result));
        require_name("result", f.result_names.back(), function->span);
      }
    }
  }
  return unit;
}

}  // namespace tenon::codegen
