#include "device/work_budget.h"

#include <utility>

#include "device/host_check.h"
#include "object/tensor.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon {

WorkBudget::WorkBudget(const WorkLimits& limits, std::string activity, std::string name)
    : limits_(limits),
      activity_(std::move(activity)),
      name_(std::move(name)),
      outer_(CallContext::current()),
      end_(deadline_from_now(limits.deadline)),
      most_(limits.memory ? limits.memory : SIZE_MAX) {}

WorkBudget::~WorkBudget() {
  if (outer_) outer_->discount_memory(allocated());
}

bool WorkBudget::is_cancelled() const {
  return limits_.cancel && limits_.cancel->load(std::memory_order_relaxed);
}

bool WorkBudget::is_expired() const {
  return end_ != Clock::time_point::max() && Clock::now() >= end_;
}

void WorkBudget::ask_host() {
  if (is_stopped_by_host_.load(std::memory_order_acquire)) std::rethrow_exception(host_failure_);
  const Clock::duration now = Clock::now().time_since_epoch();
  if (now.count() < next_check_.load(std::memory_order_relaxed)) return;
  try {
    if (!check_host()) return;
  } catch (...) {
    if (!is_stopping_.test_and_set()) {
      host_failure_ = std::current_exception();
      is_stopped_by_host_.store(true, std::memory_order_release);
    }
    throw;
  }
  constexpr Clock::duration kPeriod = std::chrono::milliseconds(20);
  next_check_.store((now + kPeriod).count(), std::memory_order_relaxed);
}

void WorkBudget::poll() {
  if (has_host_check()) ask_host();
  const bool is_stopped = is_cancelled();
  if (is_stopped || is_expired()) {
    const std::string subject = cat(activity_, " ", printable(name_));
    if (is_stopped) {
      throw Error(ErrorKind::Runtime, cat(subject, " was cancelled")).stopped_by(StopCause::Cancel);
    }
    const auto ms = static_cast<double>(limits_.deadline.count()) / 1e6;
    throw Error(ErrorKind::Runtime, cat(subject, " ran past its deadline"))
        .stopped_by(StopCause::Deadline)
        .expected(cat("at most ", ms, " ms"))
        .help(cat("raise the deadline for ", activity_));
  }
  if (outer_) outer_->poll();
}

bool WorkBudget::count_memory(size_t bytes) {
  if (is_cancelled() || is_expired()) return false;
  size_t before = allocated_.load(std::memory_order_relaxed);
  do {
    if (bytes > most_ - before) return false;
  } while (!allocated_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  if (!outer_ || outer_->count_memory(bytes)) return true;
  allocated_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void WorkBudget::discount_memory(size_t bytes) {
  allocated_.fetch_sub(bytes, std::memory_order_relaxed);
  if (outer_) outer_->discount_memory(bytes);
}

void WorkBudget::fail_memory(size_t bytes) {
  poll();
  if (outer_ && bytes <= most_ - allocated()) outer_->fail_memory(bytes);
  throw Error(ErrorKind::Runtime,
              cat(activity_, " ", printable(name_), " exceeds its memory limit"))
      .stopped_by(StopCause::Memory)
      .expected(cat("at most ", bytes_text(limits_.memory)))
      .help(cat("raise the memory limit for ", activity_));
}

Ref<StorageObj> WorkBudget::allocate(size_t bytes, size_t /*alignment*/) {
  return heap_storage(bytes);
}

BudgetedWork::BudgetedWork(const WorkLimits& limits, std::string_view activity,
                           std::string_view name)
    : budget_(limits, std::string(activity), std::string(name)), scope_(&budget_) {}
BudgetedWork::~BudgetedWork() = default;

}  // namespace tenon
