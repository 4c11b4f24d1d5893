// The packed functions of this folder in libtenon_compiler.so: recordings for hosts such as Python.
#pragma once

#include <string>

namespace tenon::report {

// Registers them, once.
void register_report_functions();

// The text of docs/compiler-library.md: all functions of libtenon_compiler.so.
std::string compiler_library_document();

}  // namespace tenon::report
