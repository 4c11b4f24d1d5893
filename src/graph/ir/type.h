// Types of graph IR. Immutable; structural equality is equality of types.
//
//   tensor[n, 3, 224, 224; f32]     dimensions known, as expressions
//   tensor[n; i64] = [m, 4]         its elements known, as expressions (rank 0 or 1, small)
//   tensor[rank=4; f32]             rank known
//   tensor[*; f32]                  rank unknown
//   i64  bool  f32                  a scalar, held in a register
//   shape[n, 4]  shape[rank=2]      a shape value
//   (T, U)   fn(T, U) -> R   array[T]   list[T] (algebraic data type)   opaque["key"]
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loop/dim.h"
#include "object/dtype.h"

namespace tenon::graph {

struct Type : Object {
  static const TypeInfo& type_info();
};
using TypeRef = Ref<const Type>;

inline constexpr int64_t kUnknownRank = -1;
// A tensor type carries element values up to this many elements.
inline constexpr int64_t kMaxCarriedValues = 64;

struct TensorType : Type {
  DataType dtype;
  int64_t rank = kUnknownRank;
  bool dims_known = false;  // then dims.size() == rank
  Array<Dim> dims;
  bool value_known = false;  // then values has one expression per element
  Array<Dim> values;
  int64_t device = 0;  // index into the module's devices; 0 is the host CPU

  static const TypeInfo& type_info();
};

struct ScalarType : Type {
  DataType dtype;
  bool value_known = false;  // integers: the value as an expression
  Dim value;
  static const TypeInfo& type_info();
};

struct ShapeType : Type {
  int64_t rank = kUnknownRank;
  bool dims_known = false;
  Array<Dim> dims;
  static const TypeInfo& type_info();
};

struct TupleType : Type {  // the empty tuple is the unit
  Array<TypeRef> fields;
  static const TypeInfo& type_info();
};

struct FunctionType : Type {
  Array<String> type_params;
  Array<TypeRef> params;
  TypeRef result;
  static const TypeInfo& type_info();
};

struct ArrayType : Type {
  TypeRef element;
  static const TypeInfo& type_info();
};

struct AdtType : Type {  // an algebraic data type of the module or the prelude, applied
  String name;
  Array<TypeRef> args;
  static const TypeInfo& type_info();
};

struct TypeVar : Type {
  String name;
  static const TypeInfo& type_info();
};

struct OpaqueType : Type {
  String key;
  static const TypeInfo& type_info();
};

// Constructors.
Ref<const TensorType> tensor_type(DataType dtype, const std::vector<Dim>& dims);
Ref<const TensorType> tensor_type_of_rank(DataType dtype, int64_t rank);
Ref<const TensorType> tensor_type_unknown(DataType dtype);
// `type` with element values; type's dims are constant and hold values.size() elements.
Ref<const TensorType> with_values(const Ref<const TensorType>& type, const std::vector<Dim>& values);
Ref<const TensorType> without_values(const Ref<const TensorType>& type);
// `type` with no element values carried anywhere in it.
TypeRef without_known_values(const TypeRef& type);
TypeRef scalar_type(DataType dtype);
TypeRef shape_type(const std::vector<Dim>& dims);
TypeRef tuple_type(const std::vector<TypeRef>& fields);
TypeRef unit_type();
TypeRef array_type(TypeRef element);
TypeRef function_type(const std::vector<TypeRef>& params, TypeRef result);

// Down-casts: null when `type` is of another kind.
template <class T>
const T* type_as(const TypeRef& type);

bool same_type(const TypeRef& a, const TypeRef& b);
// Whether a value of type `from` may stand where `to` is declared: equal, or less is known by `to`.
bool is_subtype(const TypeRef& from, const TypeRef& to);
// What both are: the join of an `if`'s arms. Null when there is none.
TypeRef join(const TypeRef& a, const TypeRef& b);
TypeRef substitute(const TypeRef& type, const DimSubstitution& map);
void collect_symbols(const TypeRef& type, std::vector<std::string>* names);

std::string to_text(const TypeRef& type);

}  // namespace tenon::graph
