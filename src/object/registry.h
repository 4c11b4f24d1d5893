// The registry: functions by name, for the whole process. Filled by explicit calls, one list per
// library; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/function.h"

namespace tenon {

struct FunctionFlags {
  // A file of an untrusted sender may link it: it checks every argument, and allocates through the
  // machine.
  bool for_files = false;
  // It keeps no argument after it returns, so that planned memory may be passed to it.
  bool no_retain = false;
};

struct RegisteredFunction {
  std::string name;
  Function function;
  FunctionFlags flags;
};

// A Usage error when the name is taken, unless `replace`; or when it is empty.
void register_function(std::string_view name, Function function, FunctionFlags flags = {},
                       bool replace = false);
// Registers a C++ callable, as Function::from_typed makes it.
template <class F>
void register_typed(std::string_view name, F body, FunctionFlags flags = {}) {
  register_function(name, Function::from_typed(std::move(body), std::string(name)), flags);
}
bool unregister_function(std::string_view name);
// Null when there is none.
Function find_function(std::string_view name);
std::optional<RegisteredFunction> find_registered(std::string_view name);
// A Usage error that names the nearest one when there is none.
Function function_named(std::string_view name);
std::vector<std::string> registered_names();  // sorted

}  // namespace tenon
