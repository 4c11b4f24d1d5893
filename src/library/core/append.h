// tenon.append(x [n, s...], row [s...]) -> [n + 1, s...]: x with the row behind its last.
//
// At x's last use, where nobody else holds its memory, the row is written behind it and the memory
// becomes the result's; memory grows by half of itself, so that n appends copy O(n) elements.
// Everywhere else the result is a copy.
#pragma once

#include "object/function.h"

namespace tenon::core {

Function append_function();

}  // namespace tenon::core
