// The registry: functions by name, for the whole process. Filled by explicit calls, one list per
// library; thread-safe.
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
  // A file of an untrusted sender may link it: it checks every argument, and allocates through the
  // machine.
  bool for_files = false;
  // Called without arguments when a program that uses the function's library is linked, and when
  // such a program ends (library.h).
  bool at_program_start = false;
  bool at_program_end = false;
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
// The functions of a library, which are registered together: `commit` makes all of them known, or
// none when it throws, so that a first use that failed for lack of memory can be tried again.
class Registration {
 public:
  void add(std::string_view name, Function function, FunctionFlags flags = {});
  template <class F>
  void add_typed(std::string_view name, F body, FunctionFlags flags = {}) {
    add(name, Function::from_typed(std::move(body), std::string(name)), flags);
  }
  // A Usage error when one of the names is taken.
  void commit();

 private:
  std::map<std::string, RegisteredFunction, std::less<>> functions_;
};

// While it lives, collects what this thread registers.
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
// Null when there is none.
Function find_function(std::string_view name);
std::optional<RegisteredFunction> find_registered(std::string_view name);
// A Usage error that names the nearest one when there is none.
Function function_named(std::string_view name);
std::vector<std::string> registered_names();  // sorted

}  // namespace tenon
