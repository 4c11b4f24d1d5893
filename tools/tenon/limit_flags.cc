#include "tools/tenon/limit_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "support/text.h"
#include "tools/tenon/command.h"

namespace tenon::tool {

void LimitFlags::add_to(CLI::App* command, const std::string& what) {
  constexpr int64_t kMostDeadline = int64_t{1000} * 3600 * 24 * 365;
  constexpr int64_t kMostMemory = int64_t{1} << 26;
  command->add_option("--deadline", deadline_ms, cat("milliseconds that ", what, " take"))
      ->check(between(1, kMostDeadline))
      ->group("Limits");
  command->add_option("--memory", memory_mb, cat("megabytes that ", what, " allocate"))
      ->check(between(1, kMostMemory))
      ->group("Limits");
}

WorkLimits LimitFlags::work() const {
  WorkLimits limits;
  if (deadline_ms) limits.deadline = std::chrono::milliseconds(*deadline_ms);
  if (memory_mb) limits.memory = static_cast<size_t>(*memory_mb) << 20;
  return limits;
}

}  // namespace tenon::tool
