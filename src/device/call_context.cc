#include "device/call_context.h"

namespace tenon {

namespace {
constinit thread_local CallContext* current_context = nullptr;
}

CallContext* CallContext::current() {
  return current_context;
}

void charge(size_t bytes) {
  if (current_context && !current_context->count_memory(bytes)) current_context->fail_memory(bytes);
}

Any CallContext::take(const Object* /*function*/, const AnyView* args, int32_t i) {
  return Any(args[i]);
}

CallContext::Scope::Scope(CallContext* context) : poller_(context), outer_(current_context) {
  current_context = context;
}
CallContext::Scope::~Scope() {
  current_context = outer_;
}

}  // namespace tenon
