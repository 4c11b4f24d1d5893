// Types of graph IR. Immutable; structural equality is equality of types.
//
//   tensor[n, 3, 224, 224; f32]     dimensions known, as expressions
//   tensor[n; i64] = [m, 4]         its elements known, as expressions (rank 0 or 1, small)
//   tensor[rank=4; f32]             rank known
//   tensor[*; f32]                  rank unknown
//   i64  bool  f32                  a scalar, held in a register
//   shape[n, 4]  shape[rank=2]      a shape value
//   i64 = [n + 1]  shape[n, 4]      a scalar with its value; a shape value
//   (T, U)   fn(T, U) -> R   array[T]   list[T] (algebraic data type)   opaque["key"]
//
// Scalars are of every element type.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loop/dim.h"
#include "loop/symbol_set.h"
#include "object/dtype.h"
#include "object/map.h"

namespace tenon::graph {

class Variances;  // of data types; graph/ir/variance.h

struct Type : Object {
  TENON_BASE_TYPE(TypeIndex::GraphType, TypeIndex::GraphTypeLast);
};
using TypeRef = Ref<const Type>;

inline constexpr int64_t kUnknownRank = -1;
// A tensor type carries element values up to this many elements.
inline constexpr int64_t kMaxCarriedValues = 64;

struct TensorType : Type {
  DataType dtype;
  int64_t rank = kUnknownRank;
  bool dims_known = false;  // if true, dims.size() == rank
  Array<Dim> dims;
  bool value_known = false;  // then values has one expression per element
  Array<Dim> values;
  int64_t device = 0;  // index into the module's devices; 0 is the host CPU
  TENON_TYPE(TypeIndex::GraphTensorType);
};

struct ScalarType : Type {
  DataType dtype;
  bool value_known = false;  // integers: the value as an expression
  Dim value;
  TENON_TYPE(TypeIndex::GraphScalarType);
};

struct ShapeType : Type {
  int64_t rank = kUnknownRank;
  bool dims_known = false;
  Array<Dim> dims;
  TENON_TYPE(TypeIndex::GraphShapeType);
};

struct TupleType : Type {  // the empty tuple is the unit type
  Array<TypeRef> fields;
  TENON_TYPE(TypeIndex::GraphTupleType);
};

struct FunctionType : Type {
  Array<String> type_params;
  Array<TypeRef> params;
  TypeRef result;
  TENON_TYPE(TypeIndex::GraphFunctionType);
};

struct ArrayType : Type {
  TypeRef element;
  TENON_TYPE(TypeIndex::GraphArrayType);
};

struct AdtType : Type {  // an algebraic data type of the module or the prelude, applied
  String name;
  Array<TypeRef> args;
  TENON_TYPE(TypeIndex::GraphAdtType);
};

struct TypeVar : Type {
  String name;
  TENON_TYPE(TypeIndex::GraphTypeVar);
};

struct OpaqueType : Type {
  String key;
  TENON_TYPE(TypeIndex::GraphOpaqueType);
};

// Constructors.
Ref<const TensorType> tensor_type(DataType dtype, const std::vector<Dim>& dims);
Ref<const TensorType> tensor_type_of_rank(DataType dtype, int64_t rank);
Ref<const TensorType> tensor_type_unknown(DataType dtype);
// `type` with element values. Its dimensions must be constant, with values.size() elements in all.
Ref<const TensorType> with_values(const Ref<const TensorType>& type,
                                  const std::vector<Dim>& values);
Ref<const TensorType> without_values(const Ref<const TensorType>& type);
// `type` without carried element values, also in its parts.
TypeRef without_known_values(const TypeRef& type);
TypeRef scalar_type(DataType dtype);
TypeRef shape_type(const std::vector<Dim>& dims);
TypeRef tuple_type(const std::vector<TypeRef>& fields);
TypeRef loop_type(const std::vector<TypeRef>& variables);  // of a loop: its only variable, or all
TypeRef unit_type();
bool is_unit(const TypeRef& type);
// Whether a program can change a value of the type in place.
bool is_changed_in_place(const TypeRef& type);
TypeRef array_type(TypeRef element);
TypeRef adt_type(std::string_view name, const std::vector<TypeRef>& args);
TypeRef type_var(std::string_view name);
TypeRef string_type();  // opaque["string"]
TypeRef function_type(const std::vector<TypeRef>& params, TypeRef result);

// Downcasts; null if `type` has another kind.
template <class T>
const T* type_as(const TypeRef& type) {
  return type.template as<T>();
}

// The element type of a tensor or scalar type.
DataType dtype_of(const TypeRef& type);
// The type if it is a tensor type of known dimensions, else null.
const TensorType* known_tensor(const TypeRef& type);
// The size in bytes of a tensor of that type, whose dimensions are known.
Dim bytes_of(const TensorType& type);
bool same_type(const TypeRef& a, const TypeRef& b);
// Whether both are tensor types whose dimensions are known and provably equal for all values of
// their symbols; element types and element values may differ.
bool same_dims(const TypeRef& a, const TypeRef& b);
// The same, and they have the same element type.
bool same_tensor(const TypeRef& a, const TypeRef& b);
// Whether `from` is a subtype of `to`: equal to it or more precise. Sizes must be provably equal.
bool is_subtype(const TypeRef& from, const TypeRef& to, const Variances& variances);
// The same, but sizes that may be equal count as equal; these pairs (from's, to's) are appended to
// `unproved`. False if `from` can't fit at run time.
bool fits(const TypeRef& from, const TypeRef& to, const Variances& variances,
          std::vector<std::pair<Dim, Dim>>* unproved);
// Whether a function may be called with a `given` where it takes a `taken`: it checks the sizes
// itself.
bool may_pass(const TypeRef& given, const TypeRef& taken, const Variances& variances);
// Whether values of the type may hold functions.
bool has_function(const TypeRef& type, const Variances& variances);
// Whether code that knows a value by the one type needs no further checks to know it by the type
// `known`, of which it is a subtype: a function may be known to take fewer sizes than was stated.
bool may_be_known_as(const TypeRef& stated, const TypeRef& known, const Variances& variances);
// The most precise common supertype, for the arms of an `if`. Null if there is none. A function of
// it takes what both take: tensors of sizes and ranks in which they differ are of any, and what is
// called checks them.
TypeRef join(const TypeRef& a, const TypeRef& b, const Variances& variances);
TypeRef substitute(const TypeRef& type, const DimSubstitution& map);
TypeRef substitute_type_vars(const TypeRef& type, const Map<String, TypeRef>& map);
// Adds the symbols of the type. Symbols that parameters of a nested function type bind are local to
// that type and are not included.
void collect_symbols(const TypeRef& type, SymbolSet* symbols);
// Adds the symbols that a value of the type binds: those that are a whole dimension or element of
// it, or of a field of a tuple.
void collect_binding_symbols(const TypeRef& type, SymbolSet* symbols);
// Drops dimensions and values that mention symbols that `keep` rejects; ranks are kept.
TypeRef erase_symbols(const TypeRef& type, const std::function<bool(std::string_view)>& keep);

// The device of the first tensor in the type that is not on the host, or 0.
int64_t other_device(const TypeRef& type);
// Whether a type variable in it has a name that `which` accepts.
bool mentions_type_var(const TypeRef& type, const std::function<bool(std::string_view)>& which);
// Whether a function type in it has type parameters.
bool has_type_parameters(const TypeRef& type);

// Bindings may not have larger or deeper types. Nested tuples of one value twice double the size at
// every step.
inline constexpr int kMaxTypeSize = 4096;
// The number of nodes in a type as a tree, counting up to kMaxTypeSize + 1, and its depth.
struct TypeMeasure {
  int size = 0, depth = 0;
};
TypeMeasure measure(const TypeRef& type);
// Throws Usage if the type is larger or deeper.
void require_bounded(const TypeRef& type);
// Throws Usage if the type, apart from its parts, contradicts itself: its rank, sizes, values and
// element type. Types that come from outside have been checked for both.
void require_consistent(const TypeRef& type);

std::string to_text(const TypeRef& type);
// The shape as in messages and text: "[n, 4]".
std::string dims_text(const Array<Dim>& dims);

}  // namespace tenon::graph
