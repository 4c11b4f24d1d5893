// The output of `tenon --version`: Tenon's, LLVM's and oneDNN's versions, LLVM's code
// generators, and the CPU.
#pragma once

#include <string>

namespace tenon::tool {

std::string version_text();
// "0.1.0"
const char* tenon_version();

}  // namespace tenon::tool
