// libtenon_text.so, which the runtime loads when a file names the library "text".
#include "object/library.h"
#include "library/text/register.h"

TENON_LIBRARY_ENTRY(tenon::register_text_functions)
