#include "graph/ir/type.h"

#include "object/reflect.h"

namespace tenon::graph {

const TypeInfo& Type::type_info() {
  static const TypeInfo info = [] {
    TypeInfo made = type_of<Type>("graph.Type", {});
    made.complete = [](Object& object) {
      const TypeRef type(static_cast<const Type*>(&object));
      require_bounded(type);
      require_consistent(type);
    };
    return made;
  }();
  return info;
}

const TypeInfo& TensorType::type_info() {
  static const ::tenon::Field fields[] = {
      field("dtype", &TensorType::dtype),
      field("rank", &TensorType::rank),
      field("dims_known", &TensorType::dims_known),
      field("dims", &TensorType::dims),
      field("value_known", &TensorType::value_known),
      field("values", &TensorType::values),
      field("device", &TensorType::device),
  };
  static const TypeInfo info = type_of<TensorType>("graph.TensorType", fields, &Type::type_info());
  return info;
}

const TypeInfo& ScalarType::type_info() {
  static const ::tenon::Field fields[] = {
      field("dtype", &ScalarType::dtype),
      field("value_known", &ScalarType::value_known),
      field("value", &ScalarType::value),
  };
  static const TypeInfo info = type_of<ScalarType>("graph.ScalarType", fields, &Type::type_info());
  return info;
}

const TypeInfo& ShapeType::type_info() {
  static const ::tenon::Field fields[] = {
      field("rank", &ShapeType::rank),
      field("dims_known", &ShapeType::dims_known),
      field("dims", &ShapeType::dims),
  };
  static const TypeInfo info = type_of<ShapeType>("graph.ShapeType", fields, &Type::type_info());
  return info;
}

const TypeInfo& TupleType::type_info() {
  static const ::tenon::Field fields[] = {field("fields", &TupleType::fields)};
  static const TypeInfo info = type_of<TupleType>("graph.TupleType", fields, &Type::type_info());
  return info;
}

const TypeInfo& FunctionType::type_info() {
  static const ::tenon::Field fields[] = {
      field("type_params", &FunctionType::type_params),
      field("params", &FunctionType::params),
      field("result", &FunctionType::result),
  };
  static const TypeInfo info =
      type_of<FunctionType>("graph.FunctionType", fields, &Type::type_info());
  return info;
}

const TypeInfo& ArrayType::type_info() {
  static const ::tenon::Field fields[] = {field("element", &ArrayType::element)};
  static const TypeInfo info = type_of<ArrayType>("graph.ArrayType", fields, &Type::type_info());
  return info;
}

const TypeInfo& AdtType::type_info() {
  static const ::tenon::Field fields[] = {field("name", &AdtType::name),
                                          field("args", &AdtType::args)};
  static const TypeInfo info = type_of<AdtType>("graph.AdtType", fields, &Type::type_info());
  return info;
}

const TypeInfo& TypeVar::type_info() {
  static const ::tenon::Field fields[] = {field("name", &TypeVar::name)};
  static const TypeInfo info = type_of<TypeVar>("graph.TypeVar", fields, &Type::type_info());
  return info;
}

const TypeInfo& OpaqueType::type_info() {
  static const ::tenon::Field fields[] = {field("key", &OpaqueType::key)};
  static const TypeInfo info = type_of<OpaqueType>("graph.OpaqueType", fields, &Type::type_info());
  return info;
}

Ref<const TensorType> tensor_type(DataType dtype, const std::vector<Dim>& dims) {
  auto t = make<TensorType>();
  t->dtype = dtype;
  t->rank = static_cast<int64_t>(dims.size());
  t->dims_known = true;
  t->dims = Array<Dim>(dims);
  return t;
}

Ref<const TensorType> tensor_type_of_rank(DataType dtype, int64_t rank) {
  if (rank == 0) return tensor_type(dtype, {});
  auto t = make<TensorType>();
  t->dtype = dtype;
  t->rank = rank;
  return t;
}

Ref<const TensorType> tensor_type_unknown(DataType dtype) {
  return tensor_type_of_rank(dtype, kUnknownRank);
}

Ref<const TensorType> with_values(const Ref<const TensorType>& type,
                                  const std::vector<Dim>& values) {
  int64_t count = 1;
  for (const Dim& d : type->dims) {
    TENON_ASSERT(d.is_const(),
                 "element values of a tensor whose size is unknown: ", to_text(TypeRef(type)));
    count *= *d.as_const();
  }
  TENON_ASSERT(type->dims_known && type->rank <= 1 && count <= kMaxCarriedValues &&
                   count == static_cast<int64_t>(values.size()),
               values.size(), " values for ", to_text(TypeRef(type)));
  auto t = make<TensorType>(*type);
  t->value_known = true;
  t->values = Array<Dim>(values);
  return t;
}

Ref<const TensorType> without_values(const Ref<const TensorType>& type) {
  if (!type->value_known) return type;
  auto t = make<TensorType>(*type);
  t->value_known = false;
  t->values.clear();
  return t;
}

TypeRef scalar_type(DataType dtype) {
  auto t = make<ScalarType>();
  t->dtype = dtype;
  return t;
}

TypeRef shape_type(const std::vector<Dim>& dims) {
  auto t = make<ShapeType>();
  t->rank = static_cast<int64_t>(dims.size());
  t->dims_known = true;
  t->dims = Array<Dim>(dims);
  return t;
}

TypeRef tuple_type(const std::vector<TypeRef>& fields) {
  auto t = make<TupleType>();
  t->fields = Array<TypeRef>(fields);
  return t;
}

TypeRef loop_type(const std::vector<TypeRef>& variables) {
  return variables.size() == 1 ? variables[0] : tuple_type(variables);
}

TypeRef unit_type() {
  static const TypeRef unit = make<TupleType>();
  return unit;
}

bool is_unit(const TypeRef& type) {
  const auto* tuple = type_as<TupleType>(type);
  return tuple && tuple->fields.empty();
}

bool is_changed_in_place(const TypeRef& type) {
  return !type.is<ScalarType>() && !type.is<TensorType>();
}

TypeRef array_type(TypeRef element) {
  auto t = make<ArrayType>();
  t->element = std::move(element);
  return t;
}

TypeRef adt_type(std::string_view name, const std::vector<TypeRef>& args) {
  auto t = make<AdtType>();
  t->name = name;
  t->args = Array<TypeRef>(args);
  return t;
}

TypeRef string_type() {
  auto t = make<OpaqueType>();
  t->key = "string";
  return t;
}

TypeRef type_var(std::string_view name) {
  auto t = make<TypeVar>();
  t->name = name;
  return t;
}

TypeRef function_type(const std::vector<TypeRef>& params, TypeRef result) {
  auto t = make<FunctionType>();
  t->params = Array<TypeRef>(params);
  t->result = std::move(result);
  return t;
}

DataType dtype_of(const TypeRef& type) {
  const auto* scalar = type.as<ScalarType>();
  return scalar ? scalar->dtype : type.as<TensorType>()->dtype;
}

Dim bytes_of(const TensorType& type) {
  return product(type.dims.to_vector()) * Dim(type.dtype.bytes());
}

}  // namespace tenon::graph
