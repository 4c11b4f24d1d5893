// Reflection: one table of fields per type, from which equality, hashing, printing and JSON are
// derived, each by one routine that walks tables. None of them recurses over data.
//
//   struct Call : Expr {
//     Ref<const Expr> callee;
//     Array<Ref<const Expr>> args;
//     Span span;
//     TENON_TYPE(TypeIndex::GraphCall);
//   };
//   // in the .cc
//   const TypeInfo& Call::type_info() {
//     static const Field fields[] = {field("callee", &Call::callee), field("args", &Call::args),
//                                    field("span", &Call::span, kIgnored)};
//     static const TypeInfo info = type_of<Call>("graph.Call", fields, &Expr::type_info());
//     return info;
//   }
//
// A base's fields come first and aren't repeated. `register_types` makes types findable by number
// and by key, which printing and JSON need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "object/any.h"
#include "object/array.h"
#include "object/map.h"
#include "object/object.h"
#include "object/shape.h"
#include "object/string.h"
#include "support/error.h"

namespace tenon {

enum class FieldKind : uint8_t {
  Bool,
  UInt8,  // also one-byte enumerations
  Int32,
  Int64,
  Double,
  DataType,
  Device,
  Any,     // also String and Bytes
  Object,  // a Ref or a handle: one pointer, null is None
  Array,   // null is empty
  Map,     // null is empty
  Shape,   // null is empty
  Span,
  StdString,
};

enum FieldFlags : uint8_t {
  kIgnored = 1,  // ignored by equality and hashing: spans, local names
  kBinds = 2,    // defines a variable, or an array of them
  kHidden = 4,   // ignored by printing and JSON as well: caches
  // Its object, or an element of its array or map, may be None. In other fields, set_field refuses
  // such elements, and `complete` a missing object.
  kOptional = 8,
};

struct Field {
  const char* name;
  uint32_t offset;
  FieldKind kind;
  uint8_t flags;
  // For kinds Any, Object, Array, Map, Shape: whether the field can hold the value, and what it can
  // hold, in words.
  bool (*accepts)(const AnyView&);
  std::string (*type_text)();
  // The names of an enumeration's values, from 0; reflection shows the name as the value.
  std::span<const char* const> names;
};

enum TypeFlags : uint32_t {
  kVariable = 1,  // equal to the variable matched with it at their definitions
};

struct TypeInfo {
  int32_t type_index;
  int32_t type_last;  // of the derived types; type_index if there can be none
  std::string_view type_key;
  const TypeInfo* parent;  // null below Object
  uint32_t size;
  uint32_t flags;
  std::span<const Field> fields;  // excluding the parents'
  Ref<Object> (*make)();          // an empty object; null for an abstract base
  // Checks that an object's fields agree with each other, and computes its hidden fields. Throws a
  // Usage error. Null if any values of the fields agree.
  void (*complete)(Object& object) = nullptr;
};

namespace detail {
template <class M>
constexpr FieldKind field_kind() {
  if constexpr (std::is_same_v<M, bool>)
    return FieldKind::Bool;
  else if constexpr (std::is_same_v<M, DataType> || std::is_same_v<M, DLDataType>)
    return FieldKind::DataType;
  else if constexpr (std::is_same_v<M, DLDevice>)
    return FieldKind::Device;
  else if constexpr (std::is_same_v<M, double>)
    return FieldKind::Double;
  else if constexpr (std::is_same_v<M, Span>)
    return FieldKind::Span;
  else if constexpr (std::is_same_v<M, std::string>)
    return FieldKind::StdString;
  else if constexpr (std::is_same_v<M, Any> || std::is_same_v<M, String> ||
                     std::is_same_v<M, Bytes>)
    return FieldKind::Any;
  else if constexpr (std::is_same_v<M, Shape>)
    return FieldKind::Shape;
  else if constexpr (std::is_base_of_v<ArrayBase, M>)
    return FieldKind::Array;
  else if constexpr (std::is_base_of_v<MapBase, M>)
    return FieldKind::Map;
  else if constexpr (std::is_base_of_v<Handle, M> || requires { typename M::Type; })
    return FieldKind::Object;
  else if constexpr ((std::is_integral_v<M> || std::is_enum_v<M>)&&sizeof(M) == 1)
    return FieldKind::UInt8;
  else if constexpr ((std::is_integral_v<M> || std::is_enum_v<M>)&&sizeof(M) == 4)
    return FieldKind::Int32;
  else {
    static_assert(std::is_integral_v<M> && sizeof(M) == 8, "unsupported field type");
    return FieldKind::Int64;
  }
}
template <class M>
bool accepts_value(const AnyView& a) {
  return AnyTraits<M>::is(a);
}
template <class M>
std::string value_text() {
  return AnyTraits<M>::name();
}
}  // namespace detail

template <class T, class M>
Field field(const char* name, M T::*member, uint8_t flags = 0) {
  alignas(T) static char place[sizeof(T)];
  auto* t = reinterpret_cast<T*>(place);
  auto offset = reinterpret_cast<char*>(&(t->*member)) - place;
  Field f{name, static_cast<uint32_t>(offset), detail::field_kind<M>(), flags, nullptr, nullptr,
          {}};
  if constexpr (detail::field_kind<M>() >= FieldKind::Any &&
                detail::field_kind<M>() <= FieldKind::Shape) {
    f.accepts = &detail::accepts_value<M>;
    f.type_text = &detail::value_text<M>;
  }
  return f;
}

// A field of an enumeration type, with the names of its values from 0.
template <class T, class M, size_t N>
requires std::is_enum_v<M> Field field(const char* name, M T::*member,
                                       const char* const (&names)[N], uint8_t flags = 0) {
  Field f = field(name, member, flags);
  f.names = names;
  return f;
}

template <class T>
TypeInfo type_of(std::string_view key, std::span<const Field> fields,
                 const TypeInfo* parent = nullptr, uint32_t flags = 0) {
  TypeInfo info{T::kTypeIndex, T::kTypeLast, key,     parent, sizeof(T),
                flags,         fields,       nullptr, nullptr};
  if constexpr (std::is_default_constructible_v<T>) {
    info.make = [] { return Ref<Object>(tenon::make<T>()); };
  }
  return info;
}

// An Internal error if a number or key is taken by another type, a number lies outside its parent's
// range, or a parent isn't registered before. Registering a type again has no effect. Thread-safe.
void register_types(std::span<const TypeInfo* const> types);
void register_types(std::initializer_list<const TypeInfo*> types);
// Null if there is none.
const TypeInfo* find_type(int32_t index);
const TypeInfo* find_type(std::string_view key);

// All fields of a type, its parents' first.
std::vector<const Field*> all_fields(const TypeInfo& type);
// A field's value, borrowed from the object if possible; strings of kind StdString and spans are
// copied (a span becomes a map of file, line, column and nodes, or None if empty).
// `names`: an enumeration is its name instead of its number.
Any get_field(const Object& object, const Field& field, bool names = true);
// A Usage error if the field can't hold the value, or (see kOptional) a None within it.
void set_field(Object& object, const Field& field, const AnyView& value);

// The last step in making an object from fields that come from outside, which set_field set. Throws
// a Usage error if a field of an object type is empty without being kOptional, or if the type's own
// `complete` does.
void complete(Object& object);

struct EqualOptions {
  // Variables that neither side defines are matched in order of appearance.
  bool map_free_variables = false;
};
// Compares types and fields recursively, except fields flagged kIgnored. A variable equals the one
// matched with it at its definition (kBinds); a free variable equals only itself. Floats are
// compared by bits. Tensors are compared by dtype, shape and bytes on the CPU, elsewhere by
// identity, and types without a table (functions, modules) by identity. The order of a map's
// entries doesn't matter if all keys are strings or numbers.
bool structural_equal(const AnyView& a, const AnyView& b, EqualOptions options = {});
// Equal values have equal hashes, the same in every process; objects compared by identity hash by
// their type.
uint64_t structural_hash(const AnyView& a, EqualOptions options = {});

// Human-readable text: 3, "text", [1, 2], {"k": 1}, tensor[2, 3; f32], graph.Call(callee=..., ...).
// Truncated with "..." after `limit` bytes.
std::string repr(const AnyView& value, size_t limit = 1 << 16);

}  // namespace tenon
