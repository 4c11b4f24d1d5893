// For tests that call the compiler's packed functions as a host does.
#pragma once

#include "driver/functions.h"
#include "object/array.h"
#include "object/library.h"
#include "object/tensor.h"

namespace tenon::driver {

using Args = Array<Any>;

inline Any call(const char* name, const auto&... args) {
  static const Module library = define_library("tenon_compiler", register_compiler_functions);
  return library.at(name)(args...);
}

inline Tensor ones(int64_t n) {
  Tensor x = Tensor::empty({n}, f32);
  for (int64_t i = 0; i < n; ++i) x.data_as<float>()[i] = 1;
  return x;
}

inline float first(const Any& tensor) {
  return *tensor.as<Tensor>().data_as<float>();
}

}  // namespace tenon::driver
