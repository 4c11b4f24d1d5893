// Libraries: packed functions that join the process together, under a name. A library is linked
// into the process and defined by a call, or lies in a shared object "libNAME.so" that exports
//
//   int tenon_register_library(void);
//
// which registers the functions (tenon_function_register) and returns 0, or leaves an error waiting
// and returns anything else. Either way the library is a Module of kind "library" with the
// functions that were registered meanwhile on that thread, and stays for the life of the process.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "object/module.h"

namespace tenon {

// Makes a library that is linked into the process: `init` registers its functions. Returns the
// library of that name that exists already, without calling `init`. When `init` throws, what it
// registered is removed, and the next call tries again. Thread-safe.
Module define_library(const std::string& name, const std::function<void()>& init);

// Letters, digits and '_': never a path.
bool is_library_name(std::string_view name);

// The library of that name: one that exists, else the first "libNAME.so" in the folders, which is
// opened and becomes one. Null when there is none. Errors: Usage for what is no library's name;
// Unsupported when the shared object can't be opened, has no entry point,
// or comes from another build of Tenon than this runtime; what its entry point reports.
Module load_library(const std::string& name, std::span<const std::string> folders);

// Identifies this build of the runtime: a hash of its sources, the compiler and its flags. Tenon's
// own libraries take the object layer from the runtime of the same build and of no other.
extern const char kBuildId[];
// What versions the symbols that only they may use: this prefix, then the build's id.
inline constexpr char kPrivateVersion[] = "TENON_PRIVATE_";

}  // namespace tenon
