// --deadline and --memory, wherever a file from anywhere is read, compiled, loaded or run.
#pragma once

#include <CLI/App.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "device/work_budget.h"

namespace tenon::tool {

class LimitFlags {
 public:
  // `what` is bounded: "compiling may".
  void add_to(CLI::App* command, const std::string& what);
  WorkLimits work() const;

 private:
  std::chrono::nanoseconds deadline_ = WorkLimits().deadline;
  int64_t memory_ = 0;  // bytes; 0: no limit
};

}  // namespace tenon::tool
