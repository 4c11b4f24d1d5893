// libtenon_onednn.so: oneDNN's functions for programs that use the runtime's shared library. The
// runtime loads it when a file names the library "onednn".
#include "library/onednn/register.h"
#include "object/function.h"

extern "C" __attribute__((visibility("default"))) int tenon_register_library(void) {
  try {
    tenon::register_onednn_functions();
    return 0;
  } catch (...) {
    return tenon::set_current_exception();
  }
}
