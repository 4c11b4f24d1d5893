// libtenon_onednn.so: the bridge for programs that use the runtime's shared library. The runtime
// opens it when a file names the library "onednn", and calls tenon_register_library.
//
// This object holds its own copy of the object layer, so the runtime's tensors are foreign to it:
// each argument goes through `admit`, which rewraps tensors around the same data. Functions and
// errors cross by the C interface.
#include <vector>

#include "library/onednn/register.h"
#include "object/registry.h"
#include "object/tensor.h"
#include "tenon/c_api.h"

namespace {

using namespace tenon;

int call_bridge(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  auto* function = static_cast<Function*>(context);
  try {
    std::vector<Any> admitted;
    admitted.reserve(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) {
      admitted.push_back(admit(*reinterpret_cast<const AnyView*>(args + i)));
    }
    if (function->call(admitted.data(), n, reinterpret_cast<Any*>(result)) == 0) return 0;
    throw take_error();
  } catch (const Error& e) {
    tenon_error_set(static_cast<int32_t>(e.kind()), e.what());
  } catch (const std::exception& e) {
    tenon_error_set(TENON_ERROR_RUNTIME, e.what());
  }
  return -1;
}

int register_one(const char* name) {
  auto* function = new Function(function_named(name));
  tenon_any value = TENON_NONE_VALUE;
  int code = tenon_function_create(
      &call_bridge, function, [](void* f) { delete static_cast<Function*>(f); }, &value);
  if (code != 0) {
    delete function;
    return code;
  }
  code = tenon_function_register(name, &value, TENON_NO_RETAIN | TENON_REPLACE);
  tenon_any_release(&value);
  return code;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int tenon_register_library(void) {
  try {
    register_onednn();
    for (const std::string& name : registered_names()) {
      if (name.starts_with("onednn.") && register_one(name.c_str()) != 0) return -1;
    }
    return 0;
  } catch (const std::exception& e) {
    tenon_error_set(TENON_ERROR_RUNTIME, e.what());
    return -1;
  }
}
