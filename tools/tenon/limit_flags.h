// --deadline and --memory, wherever a file from anywhere is read, compiled, loaded or run.
#pragma once

#include <CLI/App.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "device/work_budget.h"
#include "support/error.h"

namespace tenon::tool {

class LimitFlags {
 public:
  // `what` is bounded: "compiling may". `memory_flag` is another where --memory means something
  // else.
  void add_to(CLI::App* command, const std::string& what, const char* memory_flag = "--memory");
  // Without a limit on memory, the work may use the memory that the system has left
  // (available_memory.h), so that a mistyped size is an error: the system would end the process.
  WorkLimits work() const;
  // Only what the flags say: 0 is no limit.
  WorkLimits given() const;

 private:
  std::chrono::nanoseconds deadline_ = WorkLimits().deadline;
  int64_t memory_ = 0;  // bytes; 0: no limit
  const char* memory_flag_ = "--memory";
};

// An error about a limit, with the flag that raises it.
Error with_limit_help(Error error);

}  // namespace tenon::tool
