// libtenon_ml.so, which the runtime loads when a file names the library "ml".
#include "object/library.h"
#include "library/ml/register.h"

TENON_LIBRARY_ENTRY(tenon::register_ml_functions)
