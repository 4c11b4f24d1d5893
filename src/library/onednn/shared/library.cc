// libtenon_onednn.so: the bridge for programs that use the runtime's shared library. The runtime
// opens it when a file names the library "onednn", and calls tenon_register_library.
//
// This object holds its own copy of the object layer, so the runtime's tensors are foreign to it:
// each argument goes through `admit`, which rewraps tensors around the same data, and gets the
// flags that the C interface tells of it. Functions, errors and the number of threads cross there
// too.
#include <vector>

#include "device/parallel.h"
#include "library/onednn/register.h"
#include "library/onednn/team.h"
#include "object/registry.h"
#include "object/tensor.h"
#include "tenon/c_api.h"

namespace {

using namespace tenon;

// A constant's rewrapped tensor is owned by the runtime's, by which packed_weights knows it again.
Any admitted_with_flags(const tenon_any* argument) {
  Any value = admit(*reinterpret_cast<const AnyView*>(argument));
  int32_t flags = tenon_tensor_flags(argument);
  if (flags & TENON_TENSOR_CONSTANT) return Any(value.as<Tensor>().as_constant());
  if (flags & TENON_TENSOR_READ_ONLY) return Any(value.as<Tensor>().as_read_only());
  return value;
}

int call_bridge(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  auto* function = static_cast<Function*>(context);
  try {
    std::vector<Any> admitted;
    admitted.reserve(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) {
      admitted.push_back(admitted_with_flags(args + i));
    }
    ThreadsScope threads(tenon_function_threads());
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
  code = tenon_function_register(name, &value, TENON_REPLACE);
  tenon_any_release(&value);
  return code;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int tenon_register_library(void) {
  try {
    register_onednn();
    const ThreadTeam* team = onednn::lent_team();
    if (team && tenon_threads_lend(team->run, team->thread_count, 0) != 0) return -1;
    for (const std::string& name : registered_names()) {
      if (name.starts_with("onednn.") && register_one(name.c_str()) != 0) return -1;
    }
    return 0;
  } catch (const std::exception& e) {
    tenon_error_set(TENON_ERROR_RUNTIME, e.what());
    return -1;
  }
}
