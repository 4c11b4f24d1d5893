// libtenon_onednn.so: oneDNN's functions for programs that use the runtime's shared library. The
// runtime loads it when a file names the library "onednn".
#include "object/library.h"
#include "library/onednn/register.h"

TENON_LIBRARY_ENTRY(tenon::register_onednn_functions)
