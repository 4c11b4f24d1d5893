// --deadline and --memory, wherever a file from anywhere is read, compiled, loaded or run.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "device/work_budget.h"

namespace tenon::tool {

struct LimitFlags {
  std::optional<int64_t> deadline_ms, memory_mb;

  // `what` is bounded: "compiling may".
  void add_to(CLI::App* command, const std::string& what);
  WorkLimits work() const;
};

}  // namespace tenon::tool
