#include "vm/interp/account.h"

#include <algorithm>
#include <utility>

namespace tenon::vm {

namespace {

// Of limits where 0 means none: subtracting one makes that the largest number.
template <class T>
T smaller(T x, T y) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<Unsigned>(x) - Unsigned{1} < static_cast<Unsigned>(y) - Unsigned{1} ? x : y;
}

Limits stricter_of(const Limits& a, const Limits& b) {
  // A new limit doesn't compile here until it is named, and used below.
  const auto& [fuel, deadline, memory, depth, stack_bytes, threads] = a;
  return {.fuel = std::min(fuel, b.fuel),
          .deadline = std::min(deadline, b.deadline),
          .memory = smaller(memory, b.memory),
          .depth = std::min(depth, b.depth),
          .stack_bytes = std::min(stack_bytes, b.stack_bytes),
          .threads = smaller(threads, b.threads)};
}

}  // namespace

RunningCalls::Entry::Entry(Ref<RunningCalls> calls, std::atomic<uint32_t>* word)
    : calls_(std::move(calls)), word_(word) {
  std::lock_guard lock(calls_->mutex_);
  next_ = calls_->first_;
  link_ = &calls_->first_;
  if (next_) next_->link_ = &next_;
  calls_->first_ = this;
}

RunningCalls::Entry::~Entry() {
  std::lock_guard lock(calls_->mutex_);
  *link_ = next_;
  if (next_) next_->link_ = link_;
}

bool RunningCalls::interrupt(uint32_t bits) {
  std::lock_guard lock(mutex_);
  for (Entry* e = first_; e; e = e->next_) e->word_->fetch_or(bits, std::memory_order_relaxed);
  return first_ != nullptr;
}

Ref<Account> Account::of(const Limits& limits) {
  return make<Account>(limits, make<RunningCalls>());
}

Ref<Account> Account::stricter(const Ref<Account>& outer, const Ref<Account>& inner) {
  if (inner == outer) return inner;
  const Limits &a = outer->limits, &b = inner->limits;
  const Limits both = stricter_of(a, b);
  if (both == b) return inner;
  if (both == a) return outer;
  return make<Account>(both, inner->calls);
}

}  // namespace tenon::vm
