// Stores the computes of kernels in a file, and compiles them when the file is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::driver {

// The kernels of a lowered module as text, which --keep-computes stores in a file.
std::string kernels_text(const graph::Module& lowered);

// The phase (support/phase.h) that compile_kernels reports.
inline constexpr std::string_view kCompileKernelsPhase = "compile_kernels";

// Compiles such a text, which may be untrusted, to a kernel object for this machine whose code
// checks every access. Throws Damaged if the text is invalid or too large for a kernel, and what
// poll throws if the calling program should stop. Any stack of the calling thread suffices. `file`
// is the file's name in errors.
std::vector<uint8_t> compile_kernels(std::string_view text, const std::string& file);

}  // namespace tenon::driver
