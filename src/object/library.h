// Libraries: named sets of packed functions. A library is either linked into the process and
// defined by a call, or a shared object "libNAME.so" that exports
//
//   int tenon_register_library(void);
//
// which registers the functions (tenon_function_register) and returns 0, or sets the waiting error
// and returns anything else. Either way the library becomes a Module of kind "library" with the
// functions that its thread registered meanwhile, and stays loaded until the process ends.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "object/function.h"
#include "object/module.h"

namespace tenon {

// Defines a library that is linked into the process: `init` registers its functions. If the library
// exists already, returns it without calling `init`. If `init` throws, what it registered is
// removed, and the next call tries again. Thread-safe.
Module define_library(const std::string& name, const std::function<void()>& init);

// Whether the name has only letters, digits and '_', so that it can't be a path.
bool is_library_name(std::string_view name);

// Returns the library of that name, opening the first "libNAME.so" in `folders` if it isn't loaded
// yet. Null if there is none. Errors: Usage for an invalid name; Unsupported if the shared object
// can't be opened, has no entry point, or comes from another build than this runtime; and whatever
// its entry point reports.
Module load_library(const std::string& name, std::span<const std::string> folders);

// Identifies this build of the runtime: a hash of its sources, the compiler and its flags. Tenon's
// own libraries use the object layer of the runtime and require the same build.
extern const char kBuildId[];
// The symbol version of the private exports: this prefix, followed by the build id.
inline constexpr char kPrivateVersion[] = "TENON_PRIVATE_";

}  // namespace tenon

// The entry point of a shared object whose functions `init`, a function without arguments,
// registers.
#define TENON_LIBRARY_ENTRY(init)                                                      \
  extern "C" __attribute__((visibility("default"))) int tenon_register_library(void) { \
    try {                                                                              \
      init();                                                                          \
      return 0;                                                                        \
    } catch (...) {                                                                    \
      return tenon::set_current_exception();                                           \
    }                                                                                  \
  }
