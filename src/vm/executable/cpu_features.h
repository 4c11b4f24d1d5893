// Architectures, CPU features by name and number (cpu_features.def), and what this machine has.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// The names of architectures.def.
inline constexpr std::string_view kArchitectures[] = {
#define TENON_ARCHITECTURE(name, ...) #name,
#include "vm/executable/architectures.def"
};

// The architecture that this code is compiled for; "unknown", which runs no kernel object, if the
// table doesn't list it. The text of a macro is its value, or its name where it isn't defined.
inline constexpr std::string_view kHostArchitecture = [] {
#define TENON_TEXT(value) #value
#define TENON_ARCHITECTURE(name, macro, value, ...) \
  if (std::string_view(TENON_TEXT(macro)) == #value) return std::string_view(#name);
#include "vm/executable/architectures.def"
#undef TENON_TEXT
  return std::string_view("unknown");
}();

using CpuFeatureSet = std::array<uint64_t, kCpuFeatureWords>;

// The bit of the feature, or -1 if the table doesn't list it.
int cpu_feature_bit(std::string_view name);
// The features in `names` that the table lists; others don't matter to a kernel object and are
// ignored.
CpuFeatureSet cpu_feature_set(const std::vector<std::string>& names);
std::vector<std::string> cpu_feature_names(const CpuFeatureSet& set);

// The features that the processor has and the operating system supports, in table order.
const CpuFeatureSet& host_cpu_features();
// The needed features that this machine lacks, or whose registers the system refuses this process;
// a feature that the table doesn't list counts as lacking.
std::vector<std::string> missing_cpu_features(const std::vector<std::string>& needed);

}  // namespace tenon::vm
