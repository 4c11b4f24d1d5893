// Shared by libFuzzer targets: ends the program on a finding.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace tenon::fuzz {

inline void stop_at(const std::string& problem) {
  if (problem.empty()) return;
  std::fprintf(stderr, "finding: %s\n", problem.c_str());
  std::abort();
}

}  // namespace tenon::fuzz
