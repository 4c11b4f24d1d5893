// Native stack for compiling kernels: Tenon's code generation and LLVM recurse over expressions,
// and a host may load a file on a thread with a small stack.
#pragma once

#include <cstddef>
#include <functional>

namespace tenon::codegen {

// What the deepest kernels that are accepted (nesting.cc) need, in a build with sanitizers too.
inline constexpr size_t kCompileStack = size_t{6} << 20;

// Runs `body` on this thread if at least kCompileStack is left of its stack, else on a new thread
// while this one waits; there, it polls, counts objects and reports phases as it would here. Throws
// what the body throws, and Runtime if no thread can be started.
void run_with_compile_stack(const std::function<void()>& body);

}  // namespace tenon::codegen
