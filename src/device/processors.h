// How many processors this process may use: its affinity mask and the quotas of its cgroups.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon {

// Threads that a `cpu.max` of cgroup v2 ("150000 100000", "max 100000") pays for, rounded up; 0 for
// no limit or text that isn't one.
int32_t threads_of_cpu_max(std::string_view text);
// The same of cgroup v1's two files; a quota of -1 is no limit.
int32_t threads_of_cfs_quota(std::string_view quota, std::string_view period);
// The path in the line of /proc/self/cgroup that names `controller` ("" for v2's); empty if none
// does.
std::string_view cgroup_path(std::string_view file, std::string_view controller);

// Reads them; at least 1. Walks a cgroup's parents, whose quotas hold too.
int32_t count_processors();

}  // namespace tenon
