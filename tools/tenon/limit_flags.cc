#include "tools/tenon/limit_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "support/text.h"
#include "tools/tenon/available_memory.h"
#include "tools/tenon/quantity.h"

namespace tenon::tool {

namespace {

std::string stated_limit;   // the flag that states the memory limit
std::string default_limit;  // the same if it wasn't given, else empty

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
  stated_limit = memory_flag_;
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
  const std::string stopped(error.stopped_by());
  const auto is = [&](StopCause cause) { return stopped == to_text(cause); };
  if (is(StopCause::Stack))
    error.help("raise it with --stack SIZE, or look for infinite recursion");
  if (is(StopCause::Depth)) error.help("raise it with --depth N, or look for infinite recursion");
  if (is(StopCause::Fuel)) error.help("raise it with --fuel N");
  if (is(StopCause::Deadline)) error.help("raise it with --deadline TIME");
  if (is(StopCause::Memory)) {
    error.help(default_limit.empty()
                   ? cat("raise it with ", stated_limit, " SIZE")
                   : cat("that is the memory that the system has left: use less, or state a limit "
                         "with ",
                         default_limit, " SIZE"));
  }
  return error;
}

}  // namespace tenon::tool
