// The compiler's packed functions, which libtenon_compiler.so registers for hosts in any language.
// functions.def lists them with their signatures.
#pragma once

#include <string>

namespace tenon::driver {

// Registers all of them. Throws Usage if one of the names is taken.
void register_compiler_functions();

// The text of docs/compiler-library.md.
std::string compiler_functions_document();

}  // namespace tenon::driver
