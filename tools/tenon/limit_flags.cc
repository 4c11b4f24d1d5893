#include "tools/tenon/limit_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "support/text.h"
#include "tools/tenon/quantity.h"

namespace tenon::tool {

void LimitFlags::add_to(CLI::App* command, const std::string& what) {
  add_duration(
      command, "--deadline", deadline_, kMilliseconds, Zero::Refused,
      cat("time that ", what, " take, such as 250ms or 5s; in milliseconds without a unit"))
      ->group("Limits");
  add_size(
      command, "--memory", memory_, kMegabytes, Zero::Refused,
      cat("memory that ", what, " allocate, such as 512MB or 2GB; in megabytes without a unit"))
      ->group("Limits");
}

WorkLimits LimitFlags::work() const {
  WorkLimits limits;
  limits.deadline = deadline_;
  limits.memory = static_cast<size_t>(memory_);
  return limits;
}

}  // namespace tenon::tool
