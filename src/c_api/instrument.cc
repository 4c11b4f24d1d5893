#include "c_api/instrument.h"

#include "object/host_error.h"
#include "vm/interp/pool.h"

namespace tenon::c_api {

static_assert(static_cast<int>(vm::CallEvent::Kind::Function) == TENON_CALL_FUNCTION &&
              static_cast<int>(vm::CallEvent::Kind::Closure) == TENON_CALL_CLOSURE &&
              static_cast<int>(vm::CallEvent::Kind::Packed) == TENON_CALL_PACKED &&
              static_cast<int>(vm::CallEvent::Kind::Kernel) == TENON_CALL_KERNEL);

HostInstrument::Scope::Scope(HostInstrument* of) : of_(of) {
  if (!of) return;
  const void* const here = vm::Pool::this_thread();
  if (!of->thread_.compare_exchange_strong(around_, here, std::memory_order_acquire) &&
      around_ != here) {
    vm::Machine::fail_busy();
  }
  size_ = of->running_.size();
}

HostInstrument::Scope::~Scope() {
  if (!of_) return;
  of_->running_.resize(std::min(size_, of_->running_.size()));
  of_->thread_.store(around_, std::memory_order_release);
}

vm::CallAction HostInstrument::see(const vm::CallEvent& event) {
  // A tail call replaces its caller, whose call ends without an event of its own.
  const auto ended = [&](uint32_t depth) {
    return !running_.empty() && running_.back().depth >= depth;
  };
  if (event.before) {
    while (ended(event.depth)) running_.pop_back();
    running_.push_back(
        {event.depth, machine_.callee(event), {event.args.begin(), event.args.end()}});
  } else {
    while (ended(event.depth + 1)) running_.pop_back();
    if (!ended(event.depth))
      return vm::CallAction::Continue;  // begun before the instrument was set
  }
  // Held here, because the host may call the machine, and so this function, again.
  const Running call = event.before ? running_.back() : std::move(running_.back());
  if (!event.before) running_.pop_back();
  tenon_call_event seen{};
  seen.size = sizeof seen;
  seen.kind = static_cast<int32_t>(event.kind);
  seen.before = event.before ? 1 : 0;
  std::string_view name = event.callee;
  if (event.kind == vm::CallEvent::Kind::Closure) name = name_of(call.function);
  seen.name = {name.empty() ? "" : name.data(), name.size()};
  seen.caller = {event.caller.data(), event.caller.size()};
  seen.function = reinterpret_cast<const tenon_any*>(&call.function);
  seen.args = reinterpret_cast<const tenon_any*>(call.args.data());
  seen.arg_count = static_cast<int32_t>(call.args.size());
  seen.result = reinterpret_cast<tenon_any*>(event.result);
  switch (call_(context_, &seen)) {
    case TENON_INSTRUMENT_CONTINUE:
      return vm::CallAction::Continue;
    case TENON_INSTRUMENT_SKIP:
      while (ended(event.depth)) running_.pop_back();
      return vm::CallAction::Skip;
    default:
      throw_host_error();
  }
}

}  // namespace tenon::c_api
