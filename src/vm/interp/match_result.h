// Checks a function's returned value against its signature.
#pragma once

#include "object/any.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// A Runtime error that names the function if the value's kind, element type, rank or constant sizes
// differ from the signature's; the same for the parts of a tuple. Symbolic sizes and the contents
// of arrays and cells aren't checked.
void check_result(const FunctionUnit& function, const AnyView& value);

}  // namespace tenon::vm
