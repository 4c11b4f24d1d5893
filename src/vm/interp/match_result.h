// What a function returned, compared with the result that its signature tells callers to expect.
#pragma once

#include "object/any.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// A Runtime error that names the function when the value is of another kind, element type, rank or
// known size than the signature says; in a tuple, when one of its parts is. Sizes that are symbols,
// and what lies in arrays and cells, are not looked at.
void check_result(const FunctionUnit& function, const AnyView& value);

}  // namespace tenon::vm
