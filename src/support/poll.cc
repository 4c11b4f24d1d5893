#include "support/poll.h"

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

}  // namespace tenon
