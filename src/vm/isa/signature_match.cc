#include "vm/isa/signature_match.h"

#include <algorithm>
#include <cmath>

#include "object/array.h"
#include "object/cell.h"
#include "object/narrow_float.h"
#include "object/reflect.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/poll.h"
#include "support/text.h"
#include "vm/isa/host_function.h"

namespace tenon::vm {

using Kind = SignatureType::Kind;

namespace {

bool dims_fit(const SignatureType& type, std::span<const int64_t> dims) {
  if (type.rank >= 0 && type.rank != static_cast<int64_t>(dims.size())) return false;
  if (!type.dims_known) return true;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (type.dims[i].is_constant() && type.dims[i].value != dims[i]) return false;
  }
  return true;
}

bool scalar_fits(DataType dtype, const AnyView& value) {
  const int32_t found = value.type_index;
  if (dtype.is_bool()) return found == TypeIndex::Bool;
  if (dtype.is_int()) return found == TypeIndex::Int && wrap_to(dtype, value.v.i) == value.v.i;
  // A float is rounded to a narrower type, but not to infinity.
  return found == TypeIndex::Float &&
         (!std::isfinite(value.v.f) || std::isfinite(round_to(dtype, value.v.f)));
}

}  // namespace

bool fits(const SignatureType& type, const AnyView& value) {
  switch (type.kind) {
    case Kind::Tensor: {
      if (value.type_index != TypeIndex::Tensor) return false;
      const Tensor& t = payload_as<Tensor>(value);
      return t.dtype() == type.dtype && dims_fit(type, t.shape());
    }
    case Kind::Scalar:
      return scalar_fits(type.dtype, value);
    case Kind::Shape:
      return value.type_index == TypeIndex::Shape &&
             dims_fit(type, payload_as<Shape>(value).dims());
    case Kind::Tuple: {
      if (type.parts.empty() && value.is_none()) return true;  // the unit value
      const auto* parts = value.as_object<ArrayObj>();
      return parts && parts->size == static_cast<int64_t>(type.parts.size());
    }
    case Kind::Array:
      return value.as_object<ArrayObj>() != nullptr;
    case Kind::Function:
      return value.type_index == TypeIndex::Function;
    case Kind::Adt:
      return value.as_object<CellObj>() != nullptr;
    case Kind::Opaque: {
      if (type.name == kString) {  // a raw one becomes a string when it is admitted
        return value.type_index == TypeIndex::RawStr || String::accepts(value);
      }
      const TypeInfo* wanted = find_type(type.name);  // null for keys that name no type of objects
      return !wanted ||
             (value.type_index >= wanted->type_index && value.type_index <= wanted->type_last);
    }
    case Kind::Any:
      return true;
  }
  return true;
}

bool is_unmatched(const SignatureType& type) {
  if (type.kind == Kind::Tuple) return std::ranges::any_of(type.parts, is_unmatched);
  return type.kind != Kind::Tensor && type.kind != Kind::Shape && type.kind != Kind::Any;
}

TypeMisfit find_misfit(const SignatureType& type, const AnyView& value, bool unmatched) {
  if (unmatched && !is_unmatched(type)) return {};
  if (!fits(type, value)) return {&type, &value, -1};
  if (type.kind != Kind::Tuple || type.parts.empty()) return {};
  const Any* field = value.as_object<ArrayObj>()->begin();
  for (size_t i = 0; i < type.parts.size(); ++i) {
    const TypeMisfit found = find_misfit(type.parts[i], field[i], unmatched);
    if (found.type) return {found.type, found.value, static_cast<int64_t>(i)};
  }
  return {};
}

// Whether a value of the type may be, or have in a tuple or array, functions to hold.
static bool holds_functions(const SignatureType& type) {
  return type.kind == Kind::Function || ((type.kind == Kind::Tuple || type.kind == Kind::Array) &&
                                         std::ranges::any_of(type.parts, holds_functions));
}

void conform(const SignatureType& type, const Ref<const Object>& owner, Any* value) {
  if (value->type_index == TypeIndex::Float) {
    value->v.f = round_to(type.dtype, value->v.f);  // void, of a value of any type, rounds nothing
    return;
  }
  if (type.kind == Kind::Function && value->type_index == TypeIndex::Function) {
    *value = held_to(type, owner, value->as<Function>());
    return;
  }
  const auto* array = value->as_object<ArrayObj>();
  const bool is_tuple =
      type.kind == Kind::Tuple && array && array->size == static_cast<int64_t>(type.parts.size());
  if (!is_tuple && !(type.kind == Kind::Array && array && holds_functions(type))) return;
  Ref<ArrayObj> made = ArrayObj::with_capacity(array->size);
  Ticker ticker;
  for (int64_t i = 0; i < array->size; ++i) {
    ticker.tick();
    Any* const part = new (made->begin() + i) Any(array->begin()[i]);
    made->size = i + 1;
    conform(type.parts[is_tuple ? static_cast<size_t>(i) : 0], owner, part);
  }
  *value = Any(std::move(made));
}

std::string found_text(const AnyView& value) {
  if (value.type_index == TypeIndex::Tensor) return to_text(payload_as<Tensor>(value));
  if (value.type_index == TypeIndex::Shape) return cat("shape", to_text(payload_as<Shape>(value)));
  if (const auto* array = value.as_object<ArrayObj>()) {
    return cat("an array of ", counted(static_cast<uint64_t>(array->size), "value"));
  }
  return type_name(value.type_index);
}

std::string found_text(const SignatureType& type, const AnyView& value) {
  const int32_t kind = type.dtype.is_float() ? TypeIndex::Float : TypeIndex::Int;
  return type.kind == Kind::Scalar && value.type_index == kind ? repr(value) : found_text(value);
}

void throw_misfit(ErrorKind kind, std::string_view what, const SignatureType& type,
                  const AnyView& value) {
  throw_failure(kind, what, found_text(type, value), printable(to_text(type)));
}

std::string returned_text(std::string_view function, int64_t part, std::string_view what) {
  const std::string which = part < 0 ? "the result" : cat("result ", part);
  const std::string of =
      function.empty() ? "a function of the host" : cat("function '", printable(function), "'");
  return cat(which, " of ", of, " ", what);
}

void require_returned(std::string_view function, const SignatureType& type, const AnyView& value,
                      std::string_view what) {
  const TypeMisfit found = find_misfit(type, value, false);
  if (!found.type) return;
  throw_misfit(ErrorKind::Runtime, returned_text(function, found.part, what), *found.type,
               *found.value);
}

}  // namespace tenon::vm
