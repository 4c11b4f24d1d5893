// ObjectBudget: counts the memory of the objects that are made while a call with a memory limit
// runs, so that a program can't take more in small pieces than its limit allows.
//
// While one is in force on a thread, every object that `make` makes there counts and carries the
// budget's number in its header; destroying it gives its bytes back, from whatever thread. Objects
// that outlive the budget count for nobody. Bytes are taken from the account in steps, so that an
// object costs some additions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

// What a budget takes from: the memory limit of a call. Any thread may ask.
class MemoryAccount {
 public:
  // False when so many bytes more are not to be had.
  virtual bool count_memory(size_t bytes) = 0;
  virtual void discount_memory(size_t bytes) = 0;
  // Throws what a call that asked for too much fails with.
  [[noreturn]] virtual void fail_memory(size_t bytes) = 0;

 protected:
  ~MemoryAccount() = default;
};

class ObjectBudget {
 public:
  // In force on this thread until it dies, in the place of an outer one; null counts nothing. A
  // Runtime error when too many are in force in this process.
  explicit ObjectBudget(MemoryAccount* account);
  ~ObjectBudget();
  ObjectBudget(const ObjectBudget&) = delete;
  ObjectBudget& operator=(const ObjectBudget&) = delete;

  uint32_t number() const { return number_; }
  size_t counted() const { return live_; }  // bytes of objects that are alive

  // For `make` and what undoes it. `take` throws what the account fails with.
  void take(size_t bytes);
  static void give_back(uint32_t number, size_t bytes) noexcept;

 private:
  void charge();
  void settle() noexcept;

  MemoryAccount* account_;
  ObjectBudget* outer_;
  uint32_t number_ = 0;
  size_t live_ = 0;
  size_t charged_ = 0;  // what was taken of the account, never less than `live_`
};

namespace detail {
// Of this thread; null when nothing counts.
extern constinit thread_local ObjectBudget* object_budget
    __attribute__((tls_model("initial-exec")));
// Memory that counts for `object_budget`.
void* counted_memory(size_t bytes);
}  // namespace detail

}  // namespace tenon
