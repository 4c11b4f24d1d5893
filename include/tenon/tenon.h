/// Tenon from C++20: values, tensors, functions, programs, machines and the compiler.
///
///   #include <tenon/tenon.h>
///
///   auto program = tenon::compile("model.onnx", {{"dims", tenon::Map{{"batch", 1}}}});
///   auto x = tenon::Tensor::zeros({1, 3, 224, 224}, tenon::dtype_of<float>);
///   auto y = program(x).as<tenon::Tensor>();
///   for (float p : y.view<float>()) ...
///
/// Everything here is inline and uses only the stable C interface (tenon/c_api.h), whose functions
/// can be mixed in: every class gives its tenon_any (`raw`). No type of the C++ library crosses it.
/// Objects are released by destructors, moves don't count references, and every failure is a
/// tenon::Error. docs/cpp.md is the guide.
#pragma once

#include "tenon/cpp/builder.h"
#include "tenon/cpp/host_type.h"
