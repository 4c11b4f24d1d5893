#include "codegen/bytecode/data_types.h"

#include "codegen/bytecode/emit.h"

namespace tenon::codegen {

vm::AdtSignature adt_signature(const graph::AdtDefinition& definition) {
  vm::AdtSignature out;
  out.name = definition.name.view();
  for (const String& param : definition.type_params) out.type_params.emplace_back(param.view());
  for (const auto& constructor : definition.constructors) {
    vm::AdtSignature::Constructor& made = out.constructors.emplace_back();
    made.name = constructor->name.view();
    for (const graph::TypeRef& field : constructor->fields) {
      made.fields.push_back(signature_type(field, definition.name));
    }
  }
  return out;
}

void DataTypes::add(const vm::SignatureType& type) {
  std::vector<vm::SignatureType> pending = {type};
  while (!pending.empty()) {
    const vm::SignatureType next = std::move(pending.back());
    pending.pop_back();
    pending.insert(pending.end(), next.parts.begin(), next.parts.end());
    if (next.kind != vm::SignatureType::Kind::Adt) continue;
    const graph::AdtDefinition* definition = signatures_.find_type(next.name);
    // A type parameter has no definition.
    if (!definition || !known_.insert(next.name).second) continue;
    const vm::AdtSignature signature = adt_signature(*definition);
    types_.push_back(to_text(signature));
    for (const auto& constructor : signature.constructors) {
      pending.insert(pending.end(), constructor.fields.begin(), constructor.fields.end());
    }
  }
}

}  // namespace tenon::codegen
