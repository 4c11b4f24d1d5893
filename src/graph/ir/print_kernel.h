// Prints kernels in module text: loop nests, which parse_kernel.cc reads, and computes, which
// parse_compute.cc reads.
#pragma once

#include <string>
#include <string_view>

#include "loop/recurrence.h"

namespace tenon::graph {

// Appends `kernel @name(...) -> (...) { ... }` or `compute @name(...) -> (...) { ... }` and a
// newline.
void print_kernel(const loop::KernelInterfaceRef& kernel, std::string_view name, std::string* out);
void print_compute(const loop::Compute& compute, std::string_view name, std::string* out);
// The same with `repeat n (...)`.
void print_recurrence(const loop::Recurrence& recurrence, std::string_view name, std::string* out);

}  // namespace tenon::graph
