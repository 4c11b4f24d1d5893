#include "support/poll.h"

#include <algorithm>

namespace tenon {

namespace {
constinit thread_local Poller* current_poller = nullptr;
}  // namespace

Poller* Poller::current() {
  return current_poller;
}

Poller::Scope::Scope(Poller* poller) : outer_(current_poller) {
  current_poller = poller;
}
Poller::Scope::~Scope() {
  current_poller = outer_;
}

void poll() {
  if (current_poller) current_poller->poll();
}

void Ticker::ask() {
  left_ = kSteps;
  poll();
}

std::chrono::steady_clock::time_point deadline_from_now(std::chrono::nanoseconds duration) {
  using Clock = std::chrono::steady_clock;
  if (duration >= std::chrono::hours(24 * 365)) return Clock::time_point::max();
  return Clock::now() + std::max(duration, std::chrono::nanoseconds(0));
}

}  // namespace tenon
