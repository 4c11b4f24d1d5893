// What a register holds at a place of the code, as machine code sees it. A number is in a processor
// register, and no object is in its place in the stack.
#pragma once

#include <cstdint>

#include "vm/isa/signature.h"

namespace tenon::codegen {

enum class RegisterKind : uint8_t {
  None,  // reads as None, in the stack too
  Int,
  Bool,
  RawFloat,  // a NaN may have any payload: it is still to become that of vm/interp/arithmetic.h
  Float,
  Dead,  // isn't read before it is written; in the stack is no object
  Any,   // its value is in the stack
};
constexpr bool is_float(RegisterKind kind) {
  return kind == RegisterKind::RawFloat || kind == RegisterKind::Float;
}
constexpr bool is_number(RegisterKind kind) {
  return kind == RegisterKind::Int || kind == RegisterKind::Bool || is_float(kind);
}

// The kind of values of a type; Any if they aren't numbers.
constexpr RegisterKind kind_of(const vm::SignatureType& type) {
  if (type.kind != vm::SignatureType::Kind::Scalar) return RegisterKind::Any;
  if (type.dtype.is_bool()) return RegisterKind::Bool;
  if (type.dtype.is_int()) return RegisterKind::Int;
  return type.dtype.is_float() ? RegisterKind::Float : RegisterKind::Any;
}

}  // namespace tenon::codegen
