// ObjectBudget: counts the memory of objects made during a call with a memory limit, so that a
// program can't exceed the limit with many small objects.
//
// While a budget is in force on a thread, every object that `make` makes there is counted and
// carries the budget's number in its header; destroying it, on any thread, gives its bytes back.
// Objects that outlive the budget are no longer counted. Bytes are taken from the account in large
// steps, so that counting an object costs a few additions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

// The memory limit of a call, which budgets draw on. Thread-safe.
class MemoryAccount {
 public:
  // Returns false if that many more bytes would exceed the limit.
  virtual bool count_memory(size_t bytes) = 0;
  virtual void discount_memory(size_t bytes) = 0;
  // Throws the error of a call that exceeds its limit.
  [[noreturn]] virtual void fail_memory(size_t bytes) = 0;

 protected:
  ~MemoryAccount() = default;
};

class ObjectBudget {
 public:
  // In force on this thread while it lives, replacing an outer one; a null account counts nothing.
  // A Runtime error if too many budgets are in force in this process.
  explicit ObjectBudget(MemoryAccount* account);
  ~ObjectBudget();
  ObjectBudget(const ObjectBudget&) = delete;
  ObjectBudget& operator=(const ObjectBudget&) = delete;

  uint32_t number() const { return number_; }
  size_t counted() const { return live_; }  // bytes of objects that are alive

  // For `make` and the deleters. `take` throws the account's error.
  void take(size_t bytes);
  static void give_back(uint32_t number, size_t bytes) noexcept;

 private:
  void charge();
  void settle() noexcept;

  MemoryAccount* account_;
  ObjectBudget* outer_;
  uint32_t number_ = 0;
  size_t live_ = 0;
  size_t charged_ = 0;  // taken from the account, at least `live_`
};

namespace detail {
// This thread's budget; null if nothing is counted.
extern constinit thread_local ObjectBudget* object_budget
    __attribute__((tls_model("initial-exec")));
// Allocates memory that counts for `object_budget`.
void* counted_memory(size_t bytes);
}  // namespace detail

}  // namespace tenon
