// Numbers of the float types that C++ has no type for, f16 and bf16, as doubles.
#pragma once

#include <cstdint>

#include "object/dtype.h"

namespace tenon {

// The value rounded to the float type, ties to even; infinite beyond its greatest number.
double round_to(DataType dtype, double value);

// An element of f16 or bf16 by its bits, and the bits of the value, which is rounded.
double narrow_value(DataType dtype, uint16_t bits);
uint16_t narrow_bits(DataType dtype, double value);

}  // namespace tenon
