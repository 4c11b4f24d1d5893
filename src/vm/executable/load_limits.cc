#include "vm/executable/load_limits.h"

#include <utility>

#include "support/error.h"
#include "support/text.h"

namespace tenon::vm {

LoadBudget::LoadBudget(const LoadLimits& limits, std::string name)
    : limits_(limits),
      name_(std::move(name)),
      end_(Clock::time_point::max()),
      most_(limits.memory ? limits.memory : SIZE_MAX) {
  const auto now = Clock::now();
  if (limits.deadline < end_ - now) {
    end_ = now + std::chrono::duration_cast<Clock::duration>(limits.deadline);
  }
}

void LoadBudget::check() const {
  if (limits_.cancel && limits_.cancel->load(std::memory_order_relaxed)) {
    throw Error(ErrorKind::Runtime, cat("loading ", name_, " was cancelled"));
  }
  if (end_ == Clock::time_point::max() || Clock::now() < end_) return;
  throw Error(ErrorKind::Runtime, cat("loading ", name_, " ran past its deadline"))
      .expected(cat("at most ", static_cast<double>(limits_.deadline.count()) * 1e-6, " ms"))
      .help("raise the deadline for loading");
}

void LoadBudget::out_of_memory() const {
  throw Error(ErrorKind::Runtime, cat("loading ", name_, " exceeds its memory limit"))
      .expected(cat("at most ", bytes_text(limits_.memory), ""))
      .help("raise the memory limit for loading");
}

}  // namespace tenon::vm
