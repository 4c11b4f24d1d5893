// Kernels that a file carries as what they compute, and code made of them where the file is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::driver {

// The kernels of a lowered module as text: what --keep-computes stores in a file.
std::string kernels_text(const graph::Module& lowered);

// A kernel object for this machine of such a text, which may come from anybody: every access of its
// code is checked. Throws Error: Damaged for what is no such text or is too large for a kernel;
// what poll throws when the call that asks for it should stop. `file` names the file, for errors.
std::vector<uint8_t> compile_kernels(std::string_view text, const std::string& file);

}  // namespace tenon::driver
