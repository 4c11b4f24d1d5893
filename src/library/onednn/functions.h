// The packed functions of this folder, which register.cc registers, and what their checks share.
#pragma once

#include <optional>

#include "library/onednn/product_kernels.h"
#include "library/signatures/signatures.h"
#include "object/shape.h"
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

// The elements of a tensor of f32, or null.
inline float* floats_of(const Tensor& tensor) {
  return tensor ? tensor.data_as<float>() : nullptr;
}

// The activation as a clamp, if it is one or none.
std::optional<Clamp> clamp_of(library::Activation activation, float alpha, float beta);

// The position of an argument; a name that the signature lacks doesn't compile.
struct Position {
  const library::Signature& function;
  consteval size_t operator()(std::string_view argument) const {
    return library::argument(function, argument);
  }
};

// Throws Runtime with the function's name.
struct Failure {
  const library::Signature& function;
  [[noreturn]] void operator()(const std::string& what) const;
};

// Each of these throws Runtime with the function's name unless
// it gets as many arguments as it has parameters,
void require_arity(const library::Signature& function, int32_t count);
// `tensor` is a compact f32 tensor on the CPU with that rank (-1: any rank),
void require_f32(const library::Signature& function, const Tensor& tensor, const char* name,
                 int64_t rank = -1);
// the tensor `out` may be written,
void require_output(const library::Signature& function, const Tensor& out);
// `perm` is a permutation of that many axes, those of the tensor `name`.
void require_permutation(const library::Signature& function, const Shape& perm, size_t rank,
                         const char* name);

// Their arguments are those of their signatures; errors are thrown.
void convolution(const AnyView* args, int32_t count, Any* result);
void attention(const AnyView* args, int32_t count, Any* result);
void matmul(const AnyView* args, int32_t count, Any* result);

}  // namespace tenon::onednn
