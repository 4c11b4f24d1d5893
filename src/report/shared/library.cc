// libtenon_compiler.so: the compiler for programs that use the runtime's shared library, which load
// it with tenon_library_load("tenon_compiler").
#include "driver/functions.h"
#include "object/function.h"
#include "report/functions.h"

extern "C" __attribute__((visibility("default"))) int tenon_register_library(void) {
  try {
    tenon::driver::register_compiler_functions();
    tenon::report::register_report_functions();
    return 0;
  } catch (...) {
    return tenon::set_current_exception();
  }
}
