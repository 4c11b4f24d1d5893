// The registry: the process's functions by name, filled by explicit calls, one list per library.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/function.h"

namespace tenon {

struct FunctionFlags {
  // Files from untrusted senders may link it: it validates every argument, and allocates through
  // the machine.
  bool for_files = false;
  // Called without arguments when a program that uses the function's library is linked, or when
  // such a program ends (library.h).
  bool at_program_start = false;
  bool at_program_end = false;
  // It keeps something for later calls, such as packed weights, and makes only that during
  // preparation (device/preparation.h).
  bool prepares = false;
};

struct RegisteredFunction {
  std::string name;
  Function function;
  FunctionFlags flags;
};

// A Usage error if the name is empty, or is taken and `replace` isn't set.
void register_function(std::string_view name, Function function, FunctionFlags flags = {},
                       bool replace = false);
// Registers a C++ callable, wrapped by Function::from_typed.
template <class F>
void register_typed(std::string_view name, F body, FunctionFlags flags = {}) {
  register_function(name, Function::from_typed(std::move(body), std::string(name)), flags);
}
// The functions of a library, registered together: `commit` registers all of them, or none if it
// throws, so that a first use that ran out of memory can be tried again.
class Registration {
 public:
  void add(std::string_view name, Function function, FunctionFlags flags = {});
  template <class F>
  void add_typed(std::string_view name, F body, FunctionFlags flags = {}) {
    add(name, Function::from_typed(std::move(body), std::string(name)), flags);
  }
  // A Usage error if one of the names is taken.
  void commit();

 private:
  std::map<std::string, RegisteredFunction, std::less<>> functions_;
};

// Records what this thread registers while it lives.
class RegistrationLog {
 public:
  RegistrationLog();
  ~RegistrationLog();
  RegistrationLog(const RegistrationLog&) = delete;
  RegistrationLog& operator=(const RegistrationLog&) = delete;

  std::vector<RegisteredFunction> functions;

 private:
  RegistrationLog* outer_;
};

bool unregister_function(std::string_view name);
// Null if there is none.
Function find_function(std::string_view name);
std::optional<RegisteredFunction> find_registered(std::string_view name);
// A Usage error that suggests the nearest name if there is none.
Function function_named(std::string_view name);
std::vector<std::string> registered_names();  // sorted

}  // namespace tenon
