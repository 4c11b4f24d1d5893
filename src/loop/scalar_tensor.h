// A scalar's value as a tensor.
#pragma once

#include "object/tensor.h"

namespace tenon::loop {

// A tensor of rank 0 with the number, a double for float types, else an integer or boolean.
Tensor scalar_tensor(DataType dtype, const Any& number);

}  // namespace tenon::loop
