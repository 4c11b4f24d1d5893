// Numbers of the element types of Tenon's scalars.
#pragma once

#include <cstdint>

#include "tenon/dlpack.h"

namespace tenon::python {

// Whether the integer type has the value. A u64 has all, which are its bits.
bool is_in_range(int64_t value, DLDataType dtype);
// The value rounded to the float type, ties to even; infinite beyond its greatest number.
double round_to(DLDataType dtype, double value);

}  // namespace tenon::python
