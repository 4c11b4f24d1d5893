// Kernels in module text: loop nests, whose reader is parse_kernel.cc, and computes, whose reader
// is parse_compute.cc.
#pragma once

#include <string>
#include <string_view>

#include "loop/kernel.h"

namespace tenon::graph {

// Appends `kernel @name(...) -> (...) { ... }` or `compute @name(...) -> (...) { ... }`, and a line
// feed.
void print_kernel(const loop::KernelInterfaceRef& kernel, std::string_view name, std::string* out);
void print_compute(const loop::Compute& compute, std::string_view name, std::string* out);

}  // namespace tenon::graph
