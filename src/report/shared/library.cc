// libtenon_compiler.so: the compiler for programs that use the runtime's shared library, which load
// it with tenon_library_load("tenon_compiler").
#include "object/library.h"
#include "driver/functions.h"
#include "report/functions.h"

namespace {

void register_functions() {
  tenon::driver::register_compiler_functions();
  tenon::report::register_report_functions();
}

}  // namespace

TENON_LIBRARY_ENTRY(register_functions)
