// The packed functions of this folder, which register.cc registers.
#pragma once

#include "library/signatures/signatures.h"
#include "object/tensor.h"

namespace tenon::onednn {

// An argument, without changing its reference count.
template <class T>
const T& in_place(const AnyView& argument) {
  if (!AnyTraits<T>::is(argument)) argument.as<T>();  // throws
  return payload_as<T>(argument);
}
inline const Tensor& optional_tensor(const AnyView& argument) {
  static const Tensor none;
  return argument.is_none() ? none : in_place<Tensor>(argument);
}

inline void require_arity(const library::Signature& function, int32_t count) {
  if (static_cast<size_t>(count) == function.arity()) return;
  throw Error(ErrorKind::Runtime,
              cat(function.name, ": takes ", function.arity(), " arguments, got ", count));
}

// Their arguments are those of their signatures; errors are thrown.
void convolution(const AnyView* args, int32_t count, Any* result);
void attention(const AnyView* args, int32_t count, Any* result);
void matmul(const AnyView* args, int32_t count, Any* result);

}  // namespace tenon::onednn
