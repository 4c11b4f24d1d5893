#include "vm/interp/account.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tenon::vm {

namespace {

Limits stricter_of(const Limits& a, const Limits& b) {
  // A new limit doesn't compile here until it is named, and used below.
  const auto& [fuel, deadline, memory, depth, stack_bytes, threads] = a;
  return {.fuel = std::min(fuel, b.fuel),
          .deadline = std::min(deadline, b.deadline),
          .memory = stricter(memory, b.memory),
          .depth = std::min(depth, b.depth),
          .stack_bytes = std::min(stack_bytes, b.stack_bytes),
          .threads = stricter(threads, b.threads)};
}

// An account with room for that many calls, which `add` fills.
Ref<Account> with_room(const Limits& limits, size_t calls) {
  return make_with_tail<Account>(calls * sizeof(Ref<RunningCalls>), limits);
}

void add(Account& account, const Ref<RunningCalls>& calls) {
  auto* first = reinterpret_cast<Ref<RunningCalls>*>(&account + 1);
  new (first + account.calls.size()) Ref<RunningCalls>(calls);
  account.calls = {first, account.calls.size() + 1};
}

}  // namespace

RunningCalls::Entry::Entry(Ref<RunningCalls> calls, std::atomic<uint32_t>* word, uint32_t bits)
    : calls_(std::move(calls)), word_(word), bits_(bits) {
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

bool RunningCalls::interrupt() {
  std::lock_guard lock(mutex_);
  for (Entry* e = first_; e; e = e->next_) {
    e->interrupted_.store(true, std::memory_order_relaxed);
    // Whoever clears these bits sees the flag.
    e->word_->fetch_or(e->bits_, std::memory_order_release);
  }
  return first_ != nullptr;
}

void RunningCalls::request_check() {
  std::lock_guard lock(mutex_);
  for (Entry* e = first_; e; e = e->next_) e->word_->fetch_or(kAsked, std::memory_order_relaxed);
}

Account::~Account() {
  for (Ref<RunningCalls>& c : calls) c.~Ref();
}

Ref<const Account> Account::of(const Limits& limits, const Ref<RunningCalls>& calls) {
  Ref<Account> account = with_room(limits, 1);
  add(*account, calls);
  return account;
}

// A plain loop, since std::find is unrolled, and there are few calls.
bool Account::has(const Ref<RunningCalls>& wanted) const {
  for (const Ref<RunningCalls>& c : calls) {
    if (c == wanted) return true;
  }
  return false;
}

bool Account::includes(const Account& other) const {
  for (const Ref<RunningCalls>& c : other.calls) {
    if (!has(c)) return false;
  }
  return stricter_of(limits, other.limits) == limits;
}

Ref<const Account> Account::combined(const Account& outer, const Account& inner) {
  if (outer.includes(inner)) return Ref<const Account>(&outer);
  if (inner.includes(outer)) return Ref<const Account>(&inner);
  size_t count = inner.calls.size();
  for (const Ref<RunningCalls>& c : outer.calls) count += !inner.has(c);
  Ref<Account> both = with_room(stricter_of(outer.limits, inner.limits), count);
  for (const Ref<RunningCalls>& c : inner.calls) add(*both, c);
  for (const Ref<RunningCalls>& c : outer.calls) {
    if (!inner.has(c)) add(*both, c);
  }
  return both;
}

}  // namespace tenon::vm
