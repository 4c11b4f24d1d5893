// Kernels in module text; the reader is parse_kernel.cc.
#pragma once

#include <string>
#include <string_view>

#include "loop/kernel.h"

namespace tenon::graph {

// Appends `kernel @name(...) -> (...) { ... }` and a line feed.
void print_kernel(const loop::Kernel& kernel, std::string_view name, std::string* out);

}  // namespace tenon::graph
