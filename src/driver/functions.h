// The compiler's packed functions, which libtenon_compiler.so registers for hosts in any language.
// functions.def lists them with their signatures.
#pragma once

#include <string>
#include <string_view>

namespace tenon::driver {

// Registers all of them. Throws Usage if one of the names is taken.
void register_compiler_functions();

// Their part of docs/compiler-library.md, of which report/functions.h writes the rest.
std::string compiler_functions_document();
// What it says of a group of functions and of a function in it.
std::string group_document(std::string_view title);
std::string function_document(std::string_view name, std::string_view signature,
                              std::string_view summary);

}  // namespace tenon::driver
