// The packed functions of this folder in libtenon_compiler.so: recordings for hosts such as Python.
#pragma once

namespace tenon::report {

// Registers them, once.
void register_report_functions();

}  // namespace tenon::report
