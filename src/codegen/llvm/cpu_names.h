// The targets and CPUs that code can be compiled for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen {

inline constexpr std::string_view kArchitectures[] = {"x86_64", "aarch64"};

// The CPUs of an architecture that parse_target accepts, except "native": the levels, then LLVM's
// names in alphabetical order.
std::vector<std::string> cpu_names(std::string_view architecture);

}  // namespace tenon::codegen
