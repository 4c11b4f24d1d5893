// The number of processors that this process may use: its affinity mask and its cgroups' quotas.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon {

// The threads that a cgroup v2 `cpu.max` ("150000 100000", "max 100000") allows, rounded up; 0 for
// no limit or invalid text.
int32_t threads_of_cpu_max(std::string_view text);
// The same for cgroup v1's two files; a quota of -1 means no limit.
int32_t threads_of_cfs_quota(std::string_view quota, std::string_view period);
// The path in the line of /proc/self/cgroup that names `controller` ("" for v2's); empty if there
// is none.
std::string_view cgroup_path(std::string_view file, std::string_view controller);

// Reads the mask and the quotas, including those of parent cgroups; at least 1.
int32_t count_processors();

}  // namespace tenon
