#include "tools/tenon/available_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "device/processors.h"

namespace tenon::tool {
namespace {

// The integer after `key` and blanks in a file of lines "KEY N"; with an empty key, the first of
// the file. Nullopt if there is none ("max").
std::optional<int64_t> number_in(const std::string& path, const std::string& key = "") {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    if (!key.empty() && (!(words >> name) || name != key)) continue;
    int64_t value = 0;
    return words >> value ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

// The files of one version of cgroups. What they count as used includes caches of files.
struct Files {
  const char* root;
  const char* controller;
  const char* limit;
  const char* used;
  const char* cache;
};
constexpr Files kVersions[] = {
    {"/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"},
    {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"},
};

int64_t left_in(const std::string& folder, const Files& files) {
  const auto limit = number_in(folder + "/" + files.limit);
  const auto used = number_in(folder + "/" + files.used);
  if (!limit || !used) return INT64_MAX;
  const int64_t cache = number_in(folder + "/memory.stat", files.cache).value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - cache));
}

// The least that a cgroup and its parents leave.
int64_t left_in_groups(const Files& files) {
  std::ifstream in("/proc/self/cgroup");
  std::stringstream groups;
  groups << in.rdbuf();
  std::string path(cgroup_path(groups.str(), files.controller));
  int64_t left = left_in(files.root, files);
  while (path.size() > 1) {
    left = std::min(left, left_in(files.root + path, files));
    path.resize(path.rfind('/'));
  }
  return left;
}

}  // namespace

int64_t available_memory() {
  const auto free = number_in("/proc/meminfo", "MemAvailable:");
  if (!free) return INT64_MAX;
  constexpr int64_t kKilobyte = 1024;
  int64_t left = (*free + number_in("/proc/meminfo", "SwapFree:").value_or(0)) * kKilobyte;
  for (const Files& files : kVersions) left = std::min(left, left_in_groups(files));
  return left;
}

}  // namespace tenon::tool
