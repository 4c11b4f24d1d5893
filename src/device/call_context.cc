#include "device/call_context.h"

namespace tenon {

namespace {
constinit thread_local CallContext* current_context = nullptr;
}

CallContext* CallContext::current() {
  return current_context;
}

Any CallContext::take(const Object* /*function*/, const AnyView* args, int32_t i) {
  return Any(args[i]);
}

CallContext::Scope::Scope(CallContext* context) : outer_(current_context) {
  current_context = context;
}
CallContext::Scope::~Scope() {
  current_context = outer_;
}

void poll() {
  if (current_context) current_context->poll();
}

void Ticker::ask() {
  left_ = kSteps;
  poll();
}

}  // namespace tenon
