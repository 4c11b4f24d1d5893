#include "device/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace tenon {

namespace {

bool read_int(std::string_view text, int64_t& out) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
  return status == std::errc() && end != text.data();
}

int32_t threads_of(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  int64_t threads = quota / period + (quota % period != 0);
  return static_cast<int32_t>(std::min<int64_t>(threads, 1 << 16));
}

std::string read_file(const std::string& path) {
  std::string text;
  if (std::FILE* f = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t n;
    while ((n = std::fread(buffer, 1, sizeof buffer, f)) > 0 && text.size() < (1 << 20)) {
      text.append(buffer, n);
    }
    std::fclose(f);
  }
  return text;
}

int32_t affinity_count() {
  // The kernel's mask may be larger than cpu_set_t; the call fails until ours is large enough.
  for (size_t cpus = 1024; cpus <= (1 << 20); cpus *= 4) {
    std::vector<unsigned long> mask(cpus / (8 * sizeof(unsigned long)));
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    size_t bytes = mask.size() * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, set) == 0) return CPU_COUNT_S(bytes, set);
  }
  return static_cast<int32_t>(std::thread::hardware_concurrency());
}

int32_t smaller_limit(int32_t a, int32_t b) {  // 0 is no limit
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// The lowest limit of a cgroup and its parents under `root`; `read` reads one cgroup's.
template <class Read>
int32_t walk_parents(const std::string& root, std::string path, Read read) {
  int32_t limit = read(root);
  while (path.size() > 1) {
    limit = smaller_limit(limit, read(root + path));
    path.resize(path.rfind('/'));
  }
  return limit;
}

}  // namespace

int32_t threads_of_cpu_max(std::string_view text) {
  int64_t quota, period;
  size_t space = text.find(' ');
  if (space == std::string_view::npos || !read_int(text.substr(0, space), quota) ||
      !read_int(text.substr(space), period)) {
    return 0;
  }
  return threads_of(quota, period);
}

int32_t threads_of_cfs_quota(std::string_view quota_text, std::string_view period_text) {
  int64_t quota, period;
  if (!read_int(quota_text, quota) || !read_int(period_text, period)) return 0;
  return threads_of(quota, period);
}

std::string_view cgroup_path(std::string_view file, std::string_view controller) {
  while (!file.empty()) {  // lines such as "4:cpu,cpuacct:/a/b" and "0::/a/b"
    size_t end = file.find('\n');
    std::string_view line = file.substr(0, end);
    file.remove_prefix(end == std::string_view::npos ? file.size() : end + 1);
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    bool named = names.empty() && controller.empty();
    while (!names.empty() && !named) {
      size_t comma = names.find(',');
      named = names.substr(0, comma) == controller;
      names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    }
    if (named) return line.substr(second + 1);
  }
  return {};
}

int32_t count_processors() {
  int32_t n = std::max(1, affinity_count());
  std::string groups = read_file("/proc/self/cgroup");
  int32_t v2 = walk_parents(
      "/sys/fs/cgroup", std::string(cgroup_path(groups, "")),
      [](const std::string& dir) { return threads_of_cpu_max(read_file(dir + "/cpu.max")); });
  int32_t v1 = walk_parents("/sys/fs/cgroup/cpu", std::string(cgroup_path(groups, "cpu")),
                            [](const std::string& dir) {
                              return threads_of_cfs_quota(read_file(dir + "/cpu.cfs_quota_us"),
                                                          read_file(dir + "/cpu.cfs_period_us"));
                            });
  int32_t limit = smaller_limit(v1, v2);
  return limit == 0 ? n : std::min(n, limit);
}

}  // namespace tenon
