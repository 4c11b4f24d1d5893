// WorkBudget: what work outside of a machine's calls may use: reading a file, compiling, loading.
//
//   // from here on, this thread's work is held to the limits
//   BudgetedWork work({.memory = 1 << 30, .deadline = 10s}, "compiling", "m.onnx");
//
// The work itself needs no budget: it calls `poll` and `charge` (call_context.h), or has a Ticker.
// Work within other work (a function of a program that loads a program) draws on the outer budget
// or call as well.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "device/call_context.h"

namespace tenon {

struct WorkLimits {
  // Of memory that the work allocates: objects (graph IR among them), tensors, and what readers
  // and writers count themselves; 0 for no cap. Files that are mapped don't count, copies do.
  size_t memory = 0;
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();  // from its start
  // The work stops soon after this has become true; any thread may set it.
  const std::atomic<bool>* cancel = nullptr;

  bool operator==(const WorkLimits&) const = default;
};

// What is left of the limits. Errors are Runtime and name the activity ("compiling") and its
// object.
class WorkBudget final : public CallContext {
 public:
  // The time begins.
  WorkBudget(const WorkLimits& limits, std::string activity, std::string name);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  void poll() override;

  size_t allocated() const { return allocated_.load(std::memory_order_relaxed); }

  // Also false once the deadline has passed; fail_memory then reports that.
  bool count_memory(size_t bytes) override;
  void discount_memory(size_t bytes) override;
  [[noreturn]] void fail_memory(size_t bytes) override;
  Ref<StorageObj> allocate(size_t bytes, size_t alignment) override;
  bool may_write(const Tensor& tensor) const override { return !tensor.read_only(); }

  // Holds this thread's work, and the objects that it makes, to the budget.
  class Scope {
   public:
    explicit Scope(WorkBudget* budget) : context_(budget), objects_(budget) {}

   private:
    CallContext::Scope context_;
    ObjectBudget objects_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  bool is_cancelled() const;
  bool is_expired() const;
  // Asks the host from time to time. Once it says to stop, every thread's poll fails with its
  // error.
  void ask_host();

  WorkLimits limits_;
  std::string activity_, name_;
  CallContext* outer_;
  Clock::time_point end_;
  size_t most_;
  std::atomic<size_t> allocated_{0};
  std::atomic<Clock::rep> next_check_{0};  // when to ask the host
  std::atomic_flag is_stopping_;           // set by the thread that sets host_failure_
  std::exception_ptr host_failure_;        // once is_stopped_by_host_
  std::atomic<bool> is_stopped_by_host_{false};
};

// A budget and its scope, for work that ends with this object.
class BudgetedWork {
 public:
  BudgetedWork(const WorkLimits& limits, std::string_view activity, std::string_view name);
  ~BudgetedWork();
  BudgetedWork(const BudgetedWork&) = delete;

 private:
  WorkBudget budget_;
  WorkBudget::Scope scope_;
};

}  // namespace tenon
