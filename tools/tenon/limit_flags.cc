#include "tools/tenon/limit_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "support/text.h"
#include "tools/tenon/available_memory.h"
#include "tools/tenon/quantity.h"

namespace tenon::tool {

namespace {

std::string memory_flag;  // the one that states the memory limit
bool takes_rest = false;  // it wasn't given: the limit is what the system has left

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
  memory_flag = memory_flag_;
  WorkLimits limits;
  limits.deadline = deadline_;
  limits.memory = static_cast<size_t>(memory_);
  return limits;
}

WorkLimits LimitFlags::work() const {
  WorkLimits limits = given();
  const int64_t left = memory_ == 0 ? available_memory() : INT64_MAX;
  if (left == INT64_MAX) return limits;
  takes_rest = true;
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
    error.help(cat(takes_rest ? "that is the memory that the system has left: use less, or state a "
                                "limit with "
                              : "raise it with ",
                   memory_flag, " SIZE"));
  }
  return error;
}

}  // namespace tenon::tool
