// CPU features by name and number (cpu_features.def), and what this machine has.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vm/executable/kernel_abi.h"

namespace tenon::vm {

// As in kernel objects and in the names of targets.
#if defined(__x86_64__)
inline constexpr std::string_view kHostArchitecture = "x86_64";
#elif defined(__aarch64__)
inline constexpr std::string_view kHostArchitecture = "aarch64";
#else
inline constexpr std::string_view kHostArchitecture = "unknown";  // runs no kernel object
#endif

using CpuFeatureSet = std::array<uint64_t, kCpuFeatureWords>;

// The bit of the feature, or -1 if the table doesn't list it.
int cpu_feature_bit(std::string_view name);
// The features in `names` that the table lists; others don't matter to a kernel object and are
// ignored.
CpuFeatureSet cpu_feature_set(const std::vector<std::string>& names);
std::vector<std::string> cpu_feature_names(const CpuFeatureSet& set);

// The features that the processor has and the operating system supports, in table order.
const CpuFeatureSet& host_cpu_features();
// The needed features that this machine lacks; a feature that the table doesn't list counts as
// lacking.
std::vector<std::string> missing_cpu_features(const std::vector<std::string>& needed);

}  // namespace tenon::vm
