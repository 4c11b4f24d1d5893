// libtenon_algorithms.so, which the runtime loads when a file names the library "algorithms".
#include "object/library.h"
#include "library/algorithms/register.h"

TENON_LIBRARY_ENTRY(tenon::register_algorithm_functions)
