#include "object/object_budget.h"

#include <atomic>
#include <new>

#include "object/object_cache.h"
#include "support/error.h"

namespace tenon {

namespace detail {
constinit thread_local ObjectBudget* object_budget __attribute__((tls_model("initial-exec"))) =
    nullptr;
}  // namespace detail

namespace {

constexpr size_t kStep = size_t{16} << 10;
constexpr size_t kKept = 4 * kStep;  // the most that is charged beyond the live bytes

// The bytes that an allocator takes for a request: a word more, rounded up to a multiple of 16.
size_t taken_for(size_t bytes) {
  return (bytes + 8 + 15) & ~size_t{15};
}

// The budgets in force, by number modulo the number of places: other threads record here what they
// give back. A budget that dies frees its place; later returns for its number are dropped.
struct Place {
  std::atomic<uint32_t> number{0};
  std::atomic<size_t> returned{0};
};
constexpr uint32_t kPlaces = 1 << 14;
constinit Place places[kPlaces];
constinit std::atomic<uint32_t> last_number{0};

Place& place_of(uint32_t number) {
  return places[number % kPlaces];
}

uint32_t take_place() {
  for (uint32_t tries = 0; tries < kPlaces; ++tries) {
    uint32_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
    uint32_t free = 0;
    if (number != 0 && place_of(number).number.compare_exchange_strong(free, number)) {
      place_of(number).returned.store(0, std::memory_order_relaxed);
      return number;
    }
  }
  throw Error(ErrorKind::Runtime, "too many calls with a memory limit run at once")
      .expected(cat("at most ", kPlaces));
}

}  // namespace

ObjectBudget::ObjectBudget(MemoryAccount* account)
    : account_(account), outer_(detail::object_budget) {
  if (account) number_ = take_place();
  detail::object_budget = account ? this : nullptr;
}

ObjectBudget::~ObjectBudget() {
  detail::object_budget = outer_;
  if (!account_) return;
  place_of(number_).number.store(0);
  account_->discount_memory(charged_);
}

void ObjectBudget::take(size_t bytes) {
  live_ += taken_for(bytes);
  if (live_ <= charged_) [[likely]]
    return;
  try {
    charge();
  } catch (...) {
    live_ -= taken_for(bytes);
    throw;
  }
}

void ObjectBudget::charge() {
  // Objects that died on other threads no longer count.
  live_ -= place_of(number_).returned.exchange(0, std::memory_order_relaxed);
  if (live_ <= charged_) return;
  size_t more = live_ - charged_;
  size_t step = (more + kStep - 1) / kStep * kStep;
  if (account_->count_memory(step)) {
    charged_ += step;
  } else if (account_->count_memory(more)) {
    charged_ += more;
  } else {
    account_->fail_memory(more);
  }
}

void ObjectBudget::settle() noexcept {
  size_t more = charged_ - live_ - kStep;
  charged_ -= more;
  account_->discount_memory(more);
}

void ObjectBudget::give_back(uint32_t number, size_t bytes) noexcept {
  ObjectBudget* budget = detail::object_budget;
  if (budget && budget->number_ == number) {
    budget->live_ -= taken_for(bytes);
    if (budget->charged_ - budget->live_ > kKept) [[unlikely]]
      budget->settle();
    return;
  }
  // On another thread, or within a nested call. If another budget takes the place at this very
  // moment, it is credited with a few bytes too many.
  Place& place = place_of(number);
  if (place.number.load(std::memory_order_relaxed) == number) {
    place.returned.fetch_add(taken_for(bytes), std::memory_order_relaxed);
  }
}

void* detail::counted_memory(size_t bytes) {
  object_budget->take(bytes);
  try {
    return new_memory(bytes);
  } catch (...) {
    ObjectBudget::give_back(object_budget->number(), bytes);
    throw;
  }
}

}  // namespace tenon
