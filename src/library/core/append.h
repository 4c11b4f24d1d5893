// tenon.append(x [n, s...], row [s...]) -> [n + 1, s...]: x with the row appended.
//
// At x's last use, if nothing else references its memory, the row is written in place and the
// result takes over the memory, which grows by half its size when full, so that n appends copy O(n)
// elements. Otherwise the result is a copy.
#pragma once

#include "object/function.h"

namespace tenon::core {

Function append_function();

}  // namespace tenon::core
