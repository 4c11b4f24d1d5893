#include "vm/interp/account.h"

#include <algorithm>
#include <utility>

namespace tenon::vm {

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
  // Limits of 0 mean none for memory and threads: subtracting one makes 0 the largest number.
  auto smaller = [](auto x, auto y) {
    using Unsigned = std::make_unsigned_t<decltype(x)>;
    return static_cast<Unsigned>(x) - Unsigned{1} < static_cast<Unsigned>(y) - Unsigned{1} ? x : y;
  };
  Limits both;
  both.fuel = std::min(a.fuel, b.fuel);
  both.deadline = std::min(a.deadline, b.deadline);
  both.memory = smaller(a.memory, b.memory);
  both.depth = std::min(a.depth, b.depth);
  both.stack_bytes = std::min(a.stack_bytes, b.stack_bytes);
  both.threads = smaller(a.threads, b.threads);
  if (both == b) return inner;
  if (both == a) return outer;
  return make<Account>(both, inner->calls);
}

}  // namespace tenon::vm
