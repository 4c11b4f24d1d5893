#include "graph/ir/type.h"

namespace tenon::graph {

TypeRef without_known_values(const TypeRef& type) {
  if (auto tensor = type.cast<TensorType>()) return without_values(tensor);
  if (auto* scalar = type.as<ScalarType>(); scalar && scalar->value_known) {
    return scalar_type(scalar->dtype);
  }
  if (auto* tuple = type.as<TupleType>()) {
    std::vector<TypeRef> fields;
    for (const TypeRef& field : tuple->fields) fields.push_back(without_known_values(field));
    return tuple_type(fields);
  }
  return type;
}

}  // namespace tenon::graph
