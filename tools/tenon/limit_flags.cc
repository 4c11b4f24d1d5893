#include "tools/tenon/limit_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "support/text.h"
#include "tools/tenon/available_memory.h"
#include "tools/tenon/quantity.h"

namespace tenon::tool {

namespace {

std::string default_limit;  // the flag that would state it; empty if a flag stated the limit

}  // namespace

void LimitFlags::add_to(CLI::App* command, const std::string& what, const char* memory_flag) {
  memory_flag_ = memory_flag;
  add_duration(
      command, "--deadline", deadline_, kMilliseconds, Zero::Refused,
      cat("time that ", what, " take, such as 250ms or 5s; in milliseconds without a unit"))
      ->group("Limits");
  add_size(command, memory_flag, memory_, kMegabytes, Zero::Refused,
           cat("memory that ", what,
               " allocate, such as 512MB or 2GB; in megabytes without a unit.\nBy default what the "
               "system has left"))
      ->group("Limits");
}

WorkLimits LimitFlags::given() const {
  WorkLimits limits;
  limits.deadline = deadline_;
  limits.memory = static_cast<size_t>(memory_);
  return limits;
}

WorkLimits LimitFlags::work() const {
  WorkLimits limits = given();
  const int64_t left = memory_ == 0 ? available_memory() : INT64_MAX;
  if (left == INT64_MAX) return limits;
  default_limit = memory_flag_;
  limits.memory = static_cast<size_t>(std::max<int64_t>(1, left));
  return limits;
}

Error with_limit_help(Error error) {
  const std::string_view stopped = error.stopped_by();
  if (stopped == to_text(StopCause::Stack) || stopped == to_text(StopCause::Depth)) {
    const bool stack = stopped == to_text(StopCause::Stack);
    error.help(cat("raise it with ", stack ? "--stack SIZE" : "--depth N",
                   ", or look for infinite recursion"));
  }
  if (error.stopped_by() == to_text(StopCause::Memory) && !default_limit.empty()) {
    error.help(cat("that is the memory that the system has left: use less, or state a limit with ",
                   default_limit, " SIZE"));
  }
  return error;
}

}  // namespace tenon::tool
